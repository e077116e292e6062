// The schedule of webhook retries in the contract: jitter only adds, Retry-After only delays.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { retryAfterDelayMaxMs } from '#shared/core/base/limits/deliveries.ts'
import {
  parseRetryAfterMs,
  retryDelayMs,
  retryDelaysMs,
} from '#shared/core/deliveries/retry-schedule.ts'

const contractSeconds = [5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000]
const hour = 3_600_000

test('without jitter the waits are exactly those of the contract, then the schedule ends', () => {
  const waits = Array.from({ length: 12 }, (_, i) => retryDelayMs(i + 1, 0))
  expect(waits).toEqual([...contractSeconds.map((s) => s * 1_000), null, null])
  expect(retryDelaysMs).toHaveLength(10)
})

test('jitter adds up to a tenth and never shortens a wait', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, random) => {
        const base = contractSeconds[attempt - 1]! * 1_000
        const wait = retryDelayMs(attempt, random)!
        expect(wait).toBeGreaterThanOrEqual(base)
        expect(wait).toBeLessThanOrEqual(base * 1.1)
        expect(Number.isInteger(wait)).toBe(true)
      },
    ),
  )
})

test('Retry-After delays a wait by at most ten hours and never shortens it', () => {
  expect(retryDelayMs(1, 0, 60_000)).toBe(60_000)
  expect(retryDelayMs(1, 0, 1_000)).toBe(5_000)
  expect(retryDelayMs(1, 0, 0)).toBe(5_000)
  expect(retryDelayMs(1, 0, 365 * 24 * hour)).toBe(10 * hour)
  expect(retryDelayMs(10, 0, 10 * hour)).toBe(20 * hour)
  expect(retryAfterDelayMaxMs).toBe(10 * hour)
})

test('Retry-After does not add an attempt to an exhausted schedule', () => {
  expect(retryDelayMs(retryDelaysMs.length + 1, 0, 60_000)).toBeNull()
})

const now = Date.parse('2026-03-01T12:00:00Z')

test.each([
  ['0', 0],
  ['120', 120_000],
  [' 120 ', 120_000],
  ['9999999999', 9_999_999_999_000],
  ['Sun, 01 Mar 2026 12:01:00 GMT', 60_000],
  ['Sunday, 01-Mar-26 12:01:00 GMT', 60_000],
  ['Sun, 01 Mar 2026 11:00:00 GMT', 0],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
])('Retry-After %j means %d ms', (header, ms) => {
  expect(parseRetryAfterMs(header, now)).toBe(ms)
})

test.each([
  ...['', ' ', '-1', '+5', '1.5', '1e3', '0x10', 'soon', '5 minutes', '120, 60', '2026-03-01'],
  ...['99999999999', 'Sun, 99 Foo 2026 12:01:00 GMT', 'Infinity', 'NaN', '٣'],
])('Retry-After %j counts as absent', (header) => {
  expect(parseRetryAfterMs(header, now)).toBeNull()
})

test('any Retry-After is read as null or as a wait that is not negative', () => {
  expect(parseRetryAfterMs(undefined, now)).toBeNull()
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.date({ noInvalidDate: true }).map(String)), (header) => {
      const ms = parseRetryAfterMs(header, now)
      expect(ms === null || (Number.isFinite(ms) && ms >= 0)).toBe(true)
      const wait = retryDelayMs(1, 0, ms)!
      expect(wait).toBeGreaterThanOrEqual(5_000)
      expect(wait).toBeLessThanOrEqual(10 * hour)
    }),
  )
})
