// Limits of webhook requests in flight, in total and per tenant.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tenantLimitsCachedMax } from '#shared/core/base/limits/deliveries.ts'
import { createSendLimiter } from '../../../services/delivery/claim/send-limiter.ts'

const limits = { total: 32, retries: 16, perTenant: 8 }
const first = (tenantId: string) => ({ tenantId, retry: false })
const retry = (tenantId: string) => ({ tenantId, retry: true })

test('an unknown receiver starts with a limit of four, which doubles while it is quick', () => {
  const limiter = createSendLimiter(limits)
  expect(limiter.acquire(first('a'), 100)).toBe(4)
  limiter.recordRequest('a', 10, true)
  expect(limiter.acquire(first('a'), 100)).toBe(4)
  limiter.recordRequest('a', 10, true)
  expect(limiter.acquire(first('a'), 100)).toBe(0)
  expect(limiter.inFlight()).toBe(8)
})

/** Sends one request of a tenant with this duration. */
function send(
  limiter: ReturnType<typeof createSendLimiter>,
  tenantId: string,
  ms: number,
  ok: boolean,
) {
  limiter.acquire(first(tenantId), 1)
  limiter.recordRequest(tenantId, ms, ok)
  limiter.release(first(tenantId), 1)
}

test('a receiver that fails quickly keeps its initial limit', () => {
  const limiter = createSendLimiter(limits)
  for (let i = 0; i < 5; i++) send(limiter, 'a', 1, false)
  expect(limiter.acquire(first('a'), 100)).toBe(4)
})

test('the limit of a hanging receiver shrinks to one, and grows again when it recovers', () => {
  const limiter = createSendLimiter(limits)
  for (let i = 0; i < 5; i++) send(limiter, 'a', 15_000, false)
  expect(limiter.acquire(first('a'), 100)).toBe(1)
  limiter.release(first('a'), 1)
  for (let i = 0; i < 5; i++) send(limiter, 'a', 10, true)
  expect(limiter.acquire(first('a'), 100)).toBe(8)
})

test('retries of all tenants together leave half of the total to first attempts', () => {
  const limiter = createSendLimiter(limits)
  let taken = 0
  for (let i = 0; i < 50; i++) taken += limiter.acquire(retry(`t${i}`), 100)
  expect(taken).toBe(16)
  let firstAttempts = 0
  for (let i = 0; i < 50; i++) firstAttempts += limiter.acquire(first(`t${i}`), 100)
  expect(firstAttempts).toBe(16)
  expect(limiter.available()).toBe(0)
})

test('a tenant’s retries leave half of its limit to its own first attempts', () => {
  const limiter = createSendLimiter(limits)
  expect(limiter.acquire(retry('a'), 100)).toBe(2)
  expect(limiter.acquire(first('a'), 100)).toBe(2)
})

test('no limit is exceeded and no permit leaks, in any order of acquire and release', () => {
  const step = fc.record({
    tenant: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    retry: fc.boolean(),
    wanted: fc.nat(20),
    held: fc.constantFrom(1, 3_000, 15_000),
    give: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const limiter = createSendLimiter(limits)
      const held: { tenantId: string; retry: boolean; count: number }[] = []
      const sum = (of: (one: (typeof held)[number]) => boolean) =>
        held.filter(of).reduce((total, { count }) => total + count, 0)
      for (const { tenant, retry: isRetry, wanted, held: heldMs, give } of steps) {
        const last = give ? held.shift() : undefined
        if (last === undefined) {
          const queue = { tenantId: tenant, retry: isRetry }
          const count = limiter.acquire(queue, wanted)
          expect(count).toBeLessThanOrEqual(wanted)
          held.push({ ...queue, count })
        } else {
          if (last.count > 0) limiter.recordRequest(last.tenantId, heldMs, heldMs < 15_000)
          limiter.release(last, last.count)
        }
        expect(limiter.inFlight()).toBe(sum(() => true))
        expect(limiter.inFlight()).toBeLessThanOrEqual(limits.total)
        expect(sum((one) => one.retry)).toBeLessThanOrEqual(limits.retries)
        expect(sum((one) => one.tenantId === tenant)).toBeLessThanOrEqual(limits.perTenant)
      }
      for (const one of held) limiter.release(one, one.count)
      expect(limiter.available()).toBe(limits.total)
    }),
  )
})

test('the limit of a slow receiver survives many other tenants', () => {
  const limiter = createSendLimiter(limits)
  for (let i = 0; i < 5; i++) send(limiter, 'slow', 15_000, false)
  for (let i = 0; i < 20_000; i++) send(limiter, `quick-${i}`, 10, true)
  expect(limiter.acquire(first('slow'), 100)).toBe(1)
  // A tenant with a request in flight is never evicted.
  for (let i = 0; i < tenantLimitsCachedMax; i++) send(limiter, `more-${i}`, 10, true)
  expect(limiter.acquire(first('slow'), 100)).toBe(0)
  limiter.release(first('slow'), 1)
  expect(limiter.acquire(first('slow'), 100)).toBe(1)
})
