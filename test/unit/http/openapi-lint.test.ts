// Two linters find no fault in either OpenAPI document, and all lists are paged in the same words.

import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectral from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'
import { describe, expect, it } from 'vitest'
import { describeAdminApi } from '../../support/http/describe-admin-api.ts'
import { describePublicApi } from '../../support/http/describe-public-api.ts'

type Document = Awaited<ReturnType<typeof describePublicApi>>

/** The findings of Redocly's recommended rules. */
async function lintByRedocly(document: Document): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  return problems.map(
    ({ ruleId, message, location: [at] }) => `${ruleId} ${at?.pointer}: ${message}`,
  )
}

/**
 * The findings of Spectral's rules for OpenAPI, without the one that compares examples with their
 * schemas: Redocly's does, in a hundredth of the time.
 */
async function lintBySpectral(document: Document): Promise<string[]> {
  const linter = new spectral.Spectral()
  linter.setRuleset({ extends: [oas], rules: { 'oas3-valid-media-example': 'off' } } as never)
  const problems = await linter.run(JSON.stringify(document))
  return problems.map(({ code, message, path }) => `${code} ${path.join('/')}: ${message}`)
}

type Schema = { $ref?: string; properties?: Record<string, unknown> }
type Operation = {
  operationId?: string
  parameters?: { in: string; name: string }[]
  responses?: Record<string, { content?: Record<string, { schema?: Schema }> }>
}

/** Words of other APIs for what is `cursor`, `next_cursor`, `limit` and `total` here. */
const otherWords =
  /^(after|before|next|previous|offset|skip|start|page|size|has_more|(page|per|next|starting|ending)_.*|.*_(page|token))$/

/** What is not paged in the common words, by operation. */
function lintPaging(document: Document): string[] {
  const { paths = {}, components } = document as {
    paths?: Record<string, Record<string, Operation>>
    components?: { schemas?: Record<string, Schema> }
  }
  const lists = Object.values(paths).flatMap((item) => [item.get ?? []].flat())
  return lists.flatMap(({ operationId, parameters = [], responses = {} }) => {
    const query = parameters.filter((one) => one.in === 'query').map((one) => one.name)
    const schema = responses['200']?.content?.['application/json']?.schema
    const named = components?.schemas?.[schema?.$ref?.split('/').at(-1) ?? '']
    const answer = Object.keys((named ?? schema)?.properties ?? {})
    const others = [...query, ...answer].filter(
      (name) => name !== 'next_cursor' && otherWords.test(name),
    )
    const isPaged = query.includes('cursor') || answer.includes('next_cursor')
    const needed = isPaged
      ? [
          ...['cursor', 'limit'].flatMap((name) =>
            query.includes(name) ? [] : `parameter ${name}`,
          ),
          ...['data', 'limit', 'next_cursor'].flatMap((name) =>
            answer.includes(name) ? [] : `field ${name}`,
          ),
        ]
      : []
    return [
      ...others.map((name) => `${operationId} has ${name}`),
      ...needed.map((name) => `${operationId} has no ${name}`),
    ]
  })
}

describe.each([
  ['the REST API', describePublicApi],
  ['the admin API', describeAdminApi],
])('the document of %s', async (_, describeApi) => {
  const document = await describeApi()

  it('passes the recommended rules of Redocly', async () => {
    expect(await lintByRedocly(document)).toEqual([])
  })

  it('passes the rules of Spectral for OpenAPI', async () => {
    expect(await lintBySpectral(document)).toEqual([])
  })

  it('pages every list with cursor and limit, and answers data, limit and next_cursor', () => {
    expect(lintPaging(document)).toEqual([])
  })
})

it('a list that is paged in other words is found', () => {
  const list = (query: string[], answer: string[]) => ({
    operationId: 'listThings',
    parameters: query.map((name) => ({ in: 'query', name })),
    responses: {
      200: {
        content: {
          'application/json': {
            schema: { properties: Object.fromEntries(answer.map((name) => [name, {}])) },
          },
        },
      },
    },
  })
  const find = (query: string[], answer: string[]) =>
    lintPaging({ paths: { '/things': { get: list(query, answer) } } })
  expect(find(['after', 'limit'], ['data', 'next'])).toEqual([
    'listThings has after',
    'listThings has next',
  ])
  expect(find(['cursor'], ['data', 'next_cursor'])).toEqual([
    'listThings has no parameter limit',
    'listThings has no field limit',
  ])
})

it('both linters find an operation without a name and a schema without a type', async () => {
  const { damaged, operation } = await findOperation()
  delete operation.operationId
  operation.responses!['404'] = { content: { 'text/plain': { schema: { type: 'strin' } } } }
  for (const found of [await lintByRedocly(damaged), await lintBySpectral(damaged)]) {
    expect(found.join('\n')).toMatch(/operation-operationId /)
    expect(found.join('\n')).toMatch(/404/)
  }
})

it('an example that is not of its schema is found', async () => {
  const { damaged, operation } = await findOperation()
  const schema = { type: 'object', properties: { count: { type: 'integer' } } }
  const content = { 'application/json': { schema, example: { count: 'many' } } }
  operation.responses!['418'] = { description: 'A teapot.', content }
  expect((await lintByRedocly(damaged)).join('\n')).toMatch(
    /no-invalid-media-type-examples .*418.*count/,
  )
})

/** The document of the REST API with the first of its paths that has a 404 alone. */
async function findOperation() {
  const damaged = (await describePublicApi()) as { paths: Record<string, Record<string, Node>> }
  for (const [path, item] of Object.entries(damaged.paths)) {
    const operation = Object.values(item).find((one) => one.responses?.['404'] !== undefined)
    if (operation !== undefined)
      return { damaged: { ...damaged, paths: { [path]: item } }, operation }
  }
  throw new Error('no operation has a 404')
}

type Node = { operationId?: string; responses?: Record<string, object> }
