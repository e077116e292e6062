// Fairness of the delivery process, decided by counting alone.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tenantRoomsMax } from '#shared/core/deliveries/delivery-limits.ts'
import { createSlots } from '../../../services/delivery/claim/slots.ts'

const bounds = { total: 32, retries: 16, perTenant: 8 }
const first = (tenantId: string) => ({ tenantId, retry: false })
const retry = (tenantId: string) => ({ tenantId, retry: true })

test('an unknown receiver gets four slots; a quick one earns all of its share', () => {
  const slots = createSlots(bounds)
  expect(slots.take(first('a'), 100)).toBe(4)
  slots.noteHeld('a', 10, true)
  expect(slots.take(first('a'), 100)).toBe(4)
  slots.noteHeld('a', 10, true)
  expect(slots.take(first('a'), 100)).toBe(0)
  expect(slots.inFlight()).toBe(8)
})

/** Requests of a tenant, one after another, that each took so long. */
function hold(slots: ReturnType<typeof createSlots>, tenantId: string, ms: number, ok: boolean) {
  slots.take(first(tenantId), 1)
  slots.noteHeld(tenantId, ms, ok)
  slots.give(first(tenantId), 1)
}

test('a receiver that fails at once keeps what it began with', () => {
  const slots = createSlots(bounds)
  for (let i = 0; i < 5; i++) hold(slots, 'a', 1, false)
  expect(slots.take(first('a'), 100)).toBe(4)
})

test('a hanging receiver loses its room down to one slot, and earns it back', () => {
  const slots = createSlots(bounds)
  for (let i = 0; i < 5; i++) hold(slots, 'a', 15_000, false)
  expect(slots.take(first('a'), 100)).toBe(1)
  slots.give(first('a'), 1)
  for (let i = 0; i < 5; i++) hold(slots, 'a', 10, true)
  expect(slots.take(first('a'), 100)).toBe(8)
})

test('retries of all tenants together leave half of everything to first attempts', () => {
  const slots = createSlots(bounds)
  let taken = 0
  for (let i = 0; i < 50; i++) taken += slots.take(retry(`t${i}`), 100)
  expect(taken).toBe(16)
  let firsts = 0
  for (let i = 0; i < 50; i++) firsts += slots.take(first(`t${i}`), 100)
  expect(firsts).toBe(16)
  expect(slots.free()).toBe(0)
})

test('a tenant’s retries leave room to its own first attempts', () => {
  const slots = createSlots(bounds)
  expect(slots.take(retry('a'), 100)).toBe(2)
  expect(slots.take(first('a'), 100)).toBe(2)
})

test('whatever is taken and given, no bound is ever broken and nothing leaks', () => {
  const step = fc.record({
    tenant: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    retry: fc.boolean(),
    wanted: fc.nat(20),
    held: fc.constantFrom(1, 3_000, 15_000),
    give: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const slots = createSlots(bounds)
      const held: { tenantId: string; retry: boolean; count: number }[] = []
      const sum = (of: (one: (typeof held)[number]) => boolean) =>
        held.filter(of).reduce((total, { count }) => total + count, 0)
      for (const { tenant, retry: isRetry, wanted, held: heldMs, give } of steps) {
        const last = give ? held.shift() : undefined
        if (last === undefined) {
          const lane = { tenantId: tenant, retry: isRetry }
          const count = slots.take(lane, wanted)
          expect(count).toBeLessThanOrEqual(wanted)
          held.push({ ...lane, count })
        } else {
          if (last.count > 0) slots.noteHeld(last.tenantId, heldMs, heldMs < 15_000)
          slots.give(last, last.count)
        }
        expect(slots.inFlight()).toBe(sum(() => true))
        expect(slots.inFlight()).toBeLessThanOrEqual(bounds.total)
        expect(sum((one) => one.retry)).toBeLessThanOrEqual(bounds.retries)
        expect(sum((one) => one.tenantId === tenant)).toBeLessThanOrEqual(bounds.perTenant)
      }
      for (const one of held) slots.give(one, one.count)
      expect(slots.free()).toBe(bounds.total)
    }),
  )
})

test('however many tenants come and go, a slow receiver does not jump back to speed', () => {
  const slots = createSlots(bounds)
  for (let i = 0; i < 5; i++) hold(slots, 'slow', 15_000, false)
  for (let i = 0; i < 20_000; i++) hold(slots, `quick-${i}`, 10, true)
  expect(slots.take(first('slow'), 100)).toBe(1)
  // While it has a request in flight nothing makes it forgotten.
  for (let i = 0; i < tenantRoomsMax; i++) hold(slots, `more-${i}`, 10, true)
  expect(slots.take(first('slow'), 100)).toBe(0)
  slots.give(first('slow'), 1)
  expect(slots.take(first('slow'), 100)).toBe(1)
})
