// Two linters find no fault in either OpenAPI document.

import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectral from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'
import { describe, expect, it } from 'vitest'
import { describeAdminApi } from '../../../services/console/serve/describe-admin-api.ts'
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

/** The findings of Spectral's rules for OpenAPI. */
async function lintBySpectral(document: Document): Promise<string[]> {
  const linter = new spectral.Spectral()
  linter.setRuleset({ extends: [oas] } as never)
  const problems = await linter.run(JSON.stringify(document))
  return problems.map(({ code, message, path }) => `${code} ${path.join('/')}: ${message}`)
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
})

it('both linters find an operation without a name and a schema without a type', async () => {
  const damaged = (await describePublicApi()) as { paths: Record<string, Record<string, Node>> }
  const operations = Object.values(damaged.paths).flatMap((item) => Object.values(item))
  const operation = operations.find((one) => one.responses?.['404'] !== undefined)!
  delete operation.operationId
  operation.responses!['404'] = { content: { 'text/plain': { schema: { type: 'strin' } } } }
  for (const found of [await lintByRedocly(damaged), await lintBySpectral(damaged)]) {
    expect(found.join('\n')).toMatch(/operation-operationId /)
    expect(found.join('\n')).toMatch(/404/)
  }
})

type Node = { operationId?: string; responses?: Record<string, object> }
