// The state of a delivery after an attempt, as a pure decision.
import { expect, test } from 'vitest'
import { decideNext } from '../../../services/delivery/send/decide-next.ts'

const now = Date.parse('2027-01-01T00:00:00Z')
const decide = (
  status: number | null,
  more: { attempt?: number; retryAfter?: string; once?: boolean } = {},
) =>
  decideNext(
    { attempt: more.attempt ?? 1, once: more.once ?? false, status, retryAfter: more.retryAfter },
    now,
    0,
  )

test.each([200, 201, 202, 204, 226, 299])('%d is a success', (status) => {
  expect(decide(status)).toEqual({ next: { state: 'delivered' }, gone: false })
})

test.each([301, 302, 304, 307, 400, 401, 404, 409, 429, 500, 502, 503, 504, 599, 999, null])(
  '%j is retried after the step of the schedule',
  (status) => {
    expect(decide(status)).toEqual({
      next: { state: 'pending', delayMs: 5_000 },
      gone: false,
    })
    expect(decide(status, { attempt: 10 }).next).toMatchObject({ delayMs: 72_000_000 })
  },
)

test('after the eleventh attempt a delivery has failed', () => {
  expect(decide(500, { attempt: 11 }).next).toEqual({ state: 'failed', reason: 'exhausted' })
  expect(decide(200, { attempt: 11 }).next).toEqual({ state: 'delivered' })
})

test('a test event is tried once', () => {
  expect(decide(500, { once: true }).next).toEqual({ state: 'failed', reason: 'exhausted' })
  expect(decide(503, { once: true, retryAfter: '60' }).next).toMatchObject({ state: 'failed' })
  expect(decide(204, { once: true }).next).toEqual({ state: 'delivered' })
})

test('410 ends the delivery and the webhook, at any attempt', () => {
  for (const attempt of [1, 5, 11]) {
    expect(decide(410, { attempt })).toEqual({
      next: { state: 'failed', reason: 'gone' },
      gone: true,
    })
  }
})

test('Retry-After counts only with 429 and 503, and only delays', () => {
  const due = (status: number | null, retryAfter: string) => {
    const { next } = decide(status, { retryAfter })
    return next.state === 'pending' ? next.delayMs : null
  }
  expect(due(429, '60')).toBe(60_000)
  expect(due(503, '60')).toBe(60_000)
  expect(due(503, new Date(now + 90_000).toUTCString())).toBe(90_000)
  expect(due(503, '1')).toBe(5_000)
  expect(due(503, '-60')).toBe(5_000)
  expect(due(503, 'soon')).toBe(5_000)
  expect(due(503, '31536000')).toBe(36_000_000)
  expect(due(500, '60')).toBe(5_000)
  expect(due(302, '60')).toBe(5_000)
  expect(decide(503, { attempt: 11, retryAfter: '60' }).next).toMatchObject({ state: 'failed' })
})
