// Whether a webhook's circuit opens, from its attempts only.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  breakerAttemptsMax,
  breakerAttemptsMin,
  breakerFailedShare,
  breakerWindowMs,
} from '#shared/core/base/limits/deliveries.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { createCircuitBreaker } from '../../../services/delivery/send/circuit-breaker.ts'
import { seed } from '../../support/process/seed.ts'

const url = 'https://receiver.example/hook'
const toAttempt = (ok: boolean, atMs: number, probe = false) => ({ ok, atMs, probe })
/** Records attempts a second apart. @returns those that open the circuit */
function play(outcomes: readonly boolean[], everyMs = 1_000): number[] {
  const breaker = createCircuitBreaker()
  return outcomes.flatMap((ok, n) =>
    breaker.record('acme', url, toAttempt(ok, n * everyMs)) ? [n] : [],
  )
}
const failures = (count: number) => Array.from({ length: count }, () => false)

test('a circuit opens at the twentieth attempt if all fail, and not earlier', () => {
  expect(play(failures(30))[0]).toBe(breakerAttemptsMin - 1)
})

test('a success does not open it, and a probe that succeeds ends what was before it', () => {
  const breaker = createCircuitBreaker()
  const record = (ok: boolean, probe = false) =>
    breaker.record('acme', url, toAttempt(ok, 0, probe))
  const opened = failures(30).map(() => record(false))
  expect(opened.at(-1)).toBe(true)
  expect(record(true)).toBe(false)
  expect(record(true, true)).toBe(false)
  expect(failures(breakerAttemptsMin - 1).map(() => record(false))).not.toContain(true)
  expect(record(false)).toBe(true)
})

test('one delivery’s full schedule, and that of three, does not open it', () => {
  const breaker = createCircuitBreaker()
  const minutes = [0, 0.1, 0.6, 2.6, 12.6, 42.6, 162.6, 462.6]
  for (const minute of minutes) {
    for (let delivery = 0; delivery < 3; delivery++) {
      expect(breaker.record('acme', url, toAttempt(false, minute * 60_000))).toBe(false)
    }
  }
})

test('a long good history does not delay it: only the latest attempts count', () => {
  const good = Array.from({ length: 500 }, () => true)
  const opened = play([false, ...good, ...failures(60)], 10)
  expect(opened[0]! - good.length).toBeLessThanOrEqual(50)
})

test('failures that are further apart than the window do not add up', () => {
  expect(play(failures(200), breakerWindowMs / breakerAttemptsMin + 16_000)).toEqual([])
})

test('tenants and URLs have separate circuits', () => {
  const breaker = createCircuitBreaker()
  const noted = Array.from({ length: 100 }, (_, n) =>
    breaker.record('acme', url, toAttempt(false, n)),
  )
  expect(noted.at(-1)).toBe(true)
  expect(breaker.record('acme', `${url}/other`, toAttempt(false, 100))).toBe(false)
  expect(breaker.record('other', url, toAttempt(false, 100))).toBe(false)
})

test('with one failure in three, in any order, the circuit hardly ever opens', () => {
  const random = createRandom(seed, 'outcomes')
  const plays = Array.from({ length: 200 }, () =>
    play(Array.from({ length: 400 }, () => !random.chance(1 / 3))),
  )
  expect(plays.filter((heldAt) => heldAt.length > 0).length).toBeLessThanOrEqual(10)
})

test('it opens exactly when the latest attempts in the window require it, in any history', () => {
  const anAttempt = fc.record({
    // Runs of failures, as of a receiver that is down.
    ok: fc.constantFrom(true, false, false, false),
    probe: fc.constantFrom(true, ...Array.from({ length: 40 }, () => false)),
    gapMs: fc.oneof(fc.nat(1_000), fc.nat(breakerWindowMs / 4)),
  })
  const opened = { yes: 0, no: 0 }
  fc.assert(
    fc.property(fc.array(anAttempt, { maxLength: 120, size: 'max' }), (attempts) => {
      const breaker = createCircuitBreaker()
      let past: { ok: boolean; atMs: number }[] = []
      let nowMs = 0
      for (const { ok, probe, gapMs } of attempts) {
        nowMs += gapMs
        past.push({ ok, atMs: nowMs })
        const latest = past
          .filter(({ atMs }) => nowMs - atMs <= breakerWindowMs)
          .slice(-breakerAttemptsMax)
        const failed = latest.filter((one) => !one.ok).length
        // What was before a probe that succeeds, or before a moment without a failed attempt in the
        // window, does not count any more.
        if (failed === 0 || (ok && probe)) past = []
        const opens =
          !ok && latest.length >= breakerAttemptsMin && failed >= latest.length * breakerFailedShare
        opened[opens ? 'yes' : 'no']++
        expect(breaker.record('acme', url, toAttempt(ok, nowMs, probe))).toBe(opens)
      }
    }),
  )
  expect(Math.min(opened.yes, opened.no)).toBeGreaterThan(10)
})
