// Whether a webhook's circuit opens, from its attempts only.
import { expect, test } from 'vitest'
import { breakerAttemptsMin, breakerWindowMs } from '#shared/core/base/limits/deliveries.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { createCircuitBreaker } from '../../../services/delivery/send/circuit-breaker.ts'
import { seed } from '../../support/process/seed.ts'

const url = 'https://receiver.example/hook'
/** Records attempts a second apart. @returns those that open the circuit */
function play(outcomes: readonly boolean[], everyMs = 1_000): number[] {
  const breaker = createCircuitBreaker()
  return outcomes.flatMap((ok, n) => (breaker.record('acme', url, ok, n * everyMs) ? [n] : []))
}
const failures = (count: number) => Array.from({ length: count }, () => false)

test('a circuit opens at the twentieth attempt if all fail, and not earlier', () => {
  expect(play(failures(30))[0]).toBe(breakerAttemptsMin - 1)
})

test('one delivery’s full schedule, and that of three, does not open it', () => {
  const breaker = createCircuitBreaker()
  const minutes = [0, 0.1, 0.6, 2.6, 12.6, 42.6, 162.6, 462.6]
  for (const minute of minutes) {
    for (let delivery = 0; delivery < 3; delivery++) {
      expect(breaker.record('acme', url, false, minute * 60_000)).toBe(false)
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
  const noted = Array.from({ length: 100 }, (_, n) => breaker.record('acme', url, false, n))
  expect(noted.at(-1)).toBe(true)
  expect(breaker.record('acme', `${url}/other`, false, 100)).toBe(false)
  expect(breaker.record('other', url, false, 100)).toBe(false)
})

test('with one failure in three, in any order, the circuit hardly ever opens', () => {
  const random = createRandom(seed, 'outcomes')
  const plays = Array.from({ length: 200 }, () =>
    play(Array.from({ length: 400 }, () => !random.chance(1 / 3))),
  )
  expect(plays.filter((heldAt) => heldAt.length > 0).length).toBeLessThanOrEqual(10)
})
