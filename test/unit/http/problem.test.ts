// Errors as clients see them: one table, one shape, and no internal text.
import { describe, expect, test } from 'vitest'
import { problemSchema } from '#shared/core/http/api-schemas.ts'
import { findNearestRoute } from '#shared/core/http/nearest-route.ts'
import {
  Problem,
  type ProblemCode,
  problemCodes,
  problemStatus,
  toProblemBody,
} from '#shared/core/http/problem.ts'

const codes = Object.keys(problemCodes) as ProblemCode[]

describe('a problem', () => {
  test.each(codes)('%s is an RFC 9457 body with its stable code', (code) => {
    const body = toProblemBody(new Problem(code, 'What went wrong.'), 'req_1')
    expect(body).toEqual({
      type: `urn:device-intelligence:problem:${code}`,
      title: problemCodes[code][1],
      status: problemStatus(code),
      detail: 'What went wrong.',
      code,
      request_id: 'req_1',
    })
    expect(problemSchema.parse(body)).toEqual(body)
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
    expect(problemStatus(code)).toBeGreaterThanOrEqual(400)
  })

  test('lists the faults of a request', () => {
    const errors = [{ path: '$.signals.root', message: 'must be an object' }]
    const body = toProblemBody(new Problem('invalid_body', 'Bad.', { errors }), 'req_1')
    expect(body.errors).toEqual(errors)
    expect(problemSchema.parse(body)).toEqual(body)
  })

  test('never shows its cause', () => {
    const cause = new Error('password=hunter2')
    const problem = new Problem('unavailable', 'Later.', { cause, retryAfterSeconds: 1 })
    expect(problem.cause).toBe(cause)
    expect(JSON.stringify(toProblemBody(problem, 'req_1'))).not.toContain('hunter2')
  })
})

const routes = [
  { methods: ['GET'], url: '/openapi.json' },
  { methods: ['GET'], url: '/v1/di/alerts' },
  { methods: ['GET'], url: '/v1/di/alerts/:alert_id' },
  { methods: ['POST'], url: '/v1/di/alerts/dispositions' },
  { methods: ['POST'], url: '/v1/di/alerts/:alert_id/disposition' },
  { methods: ['GET'], url: '/v1/di/devices/:device_id' },
  { methods: ['GET'], url: '/v1/di/events/:event_id' },
  { methods: ['GET', 'POST'], url: '/v1/di/lists' },
  { methods: ['DELETE'], url: '/v1/di/lists/:entry_id' },
]

describe('the nearest route', () => {
  test.each([
    ['GET', '/v1/di/alert', 'GET /v1/di/alerts'],
    ['GET', '/v1/di/alerts/', 'GET /v1/di/alerts'],
    ['GET', '//v1/di/alerts', 'GET /v1/di/alerts'],
    ['GET', '/v1/alerts', 'GET /v1/di/alerts'],
    ['GET', '/alerts', 'GET /v1/di/alerts'],
    ['GET', '/V1/DI/Alerts', 'GET /v1/di/alerts'],
    ['GET', '/v1/di/alerts/alr_1/notes', 'GET /v1/di/alerts/{alert_id}'],
    ['POST', '/v1/di/alerts/alr_1/dispositions', 'POST /v1/di/alerts/{alert_id}/disposition'],
    ['PATCH', '/v1/di/alerts/alr_1/dispositon', 'POST /v1/di/alerts/{alert_id}/disposition'],
    ['GET', '/v1/di/device/phone', 'GET /v1/di/devices/{device_id}'],
    ['DELETE', '/v1/di/list/lst_1', 'DELETE /v1/di/lists/{entry_id}'],
    ['POST', '/v1/di/list', 'POST /v1/di/lists'],
    ['GET', '/openapi', null],
    ['GET', '/v1/di', null],
    ['GET', '/v1/di/tenants/acme', null],
    ['GET', '/', null],
    ['GET', `/${'v1/'.repeat(9_000)}alerts`, null],
    ['GET', `/v1/di/${'alerts'.repeat(9_000)}`, null],
  ])('of %s %s', (method, path, nearest) => {
    expect(findNearestRoute({ method, path }, routes)).toBe(nearest)
  })
})
