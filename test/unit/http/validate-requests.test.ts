// Requests are checked against the schemas of their routes, and every fault is named.
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { createHttpServer } from '#shared/io/http/http-server.ts'
import { validatorCompiler } from '#shared/io/http/validate-requests.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'

const server = createHttpServer({ log: createLog('test', 'silent'), metrics: createMetrics('api') })
server.setValidatorCompiler(validatorCompiler)
server.setSerializerCompiler(() => JSON.stringify)
server.withTypeProvider<ZodTypeProvider>().post(
  '/things/:id',
  {
    schema: {
      params: z.object({ id: z.string().max(4, 'is too long') }),
      querystring: z.strictObject({
        limit: z.coerce.number().int().default(7),
        label: z.string().optional(),
        from: z.coerce.number().optional(),
        to: z.coerce.number().optional(),
        min_score: z.coerce.number().optional(),
        max_score: z.coerce.number().optional(),
      }),
      body: z.strictObject({
        tags: z.array(z.string('must be text')),
        rate: z.number().positive().lt(5).optional(),
        name: z.string().min(1).max(3).optional(),
      }),
    },
  },
  async ({ params, query, body }) => ({ ...params, ...query, ...body }),
)
afterAll(() => server.close())

const call = async (url: string, body: object = { tags: [] }) => {
  const response = await server.inject({ method: 'POST', url, payload: body })
  return { status: response.statusCode, ...response.json<Record<string, unknown>>() }
}

it('a valid request reaches its route with parsed values', async () => {
  expect(await call('/things/a?limit=3', { tags: ['x'] })).toEqual({
    status: 200,
    id: 'a',
    limit: 3,
    tags: ['x'],
  })
  expect(await call('/things/a')).toMatchObject({ status: 200, limit: 7 })
})

it.each([
  ['limit=3&limit=3', 'limit', 'must be given only once'],
  ['lmit=3', 'lmit', 'is not a parameter of this call'],
  ['limit=%ff', 'limit', 'is not percent-encoded UTF-8'],
  ['label=a%00b', 'label', 'must not contain the character U+0000'],
  ['from=3&to=2', 'to', 'must not be before `from`'],
  ['min_score=60&max_score=40', 'max_score', 'must not be below `min_score`'],
])('the query %s is rejected and its fault named', async (query, path, message) => {
  const answer = await call(`/things/a?${query}`)
  expect(answer).toMatchObject({ status: 400, code: 'invalid_query', errors: [{ path, message }] })
})

it('a range may be empty', async () => {
  expect(await call('/things/a?from=2&to=2&min_score=40&max_score=40')).toMatchObject({
    status: 200,
  })
})

it('faults of the path and of the body are named', async () => {
  expect(await call('/things/a%00')).toMatchObject({
    code: 'invalid_path',
    errors: [{ path: 'id', message: 'must not contain the character U+0000' }],
  })
  expect(await call('/things/abcde')).toMatchObject({
    code: 'invalid_path',
    errors: [{ path: 'id', message: 'is too long' }],
  })
  expect(await call('/things/a', { tags: ['x', 1], more: true })).toMatchObject({
    code: 'invalid_body',
    errors: [{ path: '$.tags[1]', message: 'must be text' }, { path: '$.more' }],
  })
})

it.each([
  [{ rate: 0 }, 'must be more than 0'],
  [{ rate: 5 }, 'must be less than 5'],
  [{ rate: '1' }, 'must be a number'],
  [{ name: '' }, 'must have at least 1 character'],
  [{ name: 'long' }, 'must have at most 3 characters'],
  [{ tags: undefined }, 'is missing'],
])('the bound of a value is named as it holds: %j', async (fields, message) => {
  const answer = await call('/things/a', { tags: [], ...fields })
  expect(answer).toMatchObject({ status: 400, errors: [{ message }] })
})

it.each([
  ['is not valid JSON: it is cut off after 10 bytes', '{"tags":[]'],
  ['is not valid JSON at byte 1 of 11, counted from 0', "{'tags':[]}"],
  ['is not valid JSON at byte 14 of 16, counted from 0', '{"tags":["ü",]}'],
  ['is not valid JSON: it is cut off after 1 bytes', ' '],
  ['is not valid JSON', '['.repeat(50_000)],
  ['has a key that is not allowed: __proto__, or constructor', '{"tags":[],"__proto__":{}}'],
])('a broken body is rejected with its place: %s', async (message, payload) => {
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  const response = await server.inject({ method: 'POST', url: '/things/a', payload, headers })
  const answer = response.json<{ errors: { message: string }[] }>()
  expect(answer).toMatchObject({ status: 400, code: 'invalid_body', errors: [{ path: '$' }] })
  expect(answer.errors[0]!.message.slice(0, message.length)).toBe(message)
})
