// Errors as clients see them: one table, one shape, and no internal text.
import { describe, expect, test } from 'vitest'
import { problemSchema } from '#shared/core/http/api-schemas.ts'
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
