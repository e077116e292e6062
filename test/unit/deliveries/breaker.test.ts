// When a webhook's deliveries are held: counted without a clock, a database or a receiver.
import { expect, test } from 'vitest'
import { breakerAttemptsMin, breakerWindowMs } from '#shared/core/deliveries/delivery-limits.ts'
import { createBreaker } from '../../../services/delivery/send/breaker.ts'
import { createRandom } from '../../../services/fleet/random.ts'
import { seed } from '../../support/process/seed.ts'

const url = 'https://receiver.example/hook'
/** Notes attempts a second apart; says at which of them it asked to hold. */
function play(outcomes: readonly boolean[], everyMs = 1_000): number[] {
  const breaker = createBreaker()
  return outcomes.flatMap((ok, n) => (breaker.note('acme', url, ok, n * everyMs) ? [n] : []))
}
const failures = (count: number) => Array.from({ length: count }, () => false)

test('a receiver that fails everything is held from the twentieth attempt on, not earlier', () => {
  expect(play(failures(30))[0]).toBe(breakerAttemptsMin - 1)
})

test('the whole schedule of one delivery, and of three, is far from it', () => {
  const breaker = createBreaker()
  const minutes = [0, 0.1, 0.6, 2.6, 12.6, 42.6, 162.6, 462.6]
  for (const minute of minutes) {
    for (let delivery = 0; delivery < 3; delivery++) {
      expect(breaker.note('acme', url, false, minute * 60_000)).toBe(false)
    }
  }
})

test('a long good past does not delay it: the latest attempts count', () => {
  const good = Array.from({ length: 500 }, () => true)
  const held = play([false, ...good, ...failures(60)], 10)
  expect(held[0]! - good.length).toBeLessThanOrEqual(50)
})

test('failures further apart than the window are never added up', () => {
  expect(play(failures(200), breakerWindowMs / breakerAttemptsMin + 16_000)).toEqual([])
})

test('tenants and URLs are judged apart', () => {
  const breaker = createBreaker()
  const noted = Array.from({ length: 100 }, (_, n) => breaker.note('acme', url, false, n))
  expect(noted.at(-1)).toBe(true)
  expect(breaker.note('acme', `${url}/other`, false, 100)).toBe(false)
  expect(breaker.note('other', url, false, 100)).toBe(false)
})

test('where one in three fails, whatever the order, it is hardly ever held', () => {
  const random = createRandom(seed, 'outcomes')
  const plays = Array.from({ length: 200 }, () =>
    play(Array.from({ length: 400 }, () => !random.chance(1 / 3))),
  )
  expect(plays.filter((heldAt) => heldAt.length > 0).length).toBeLessThanOrEqual(10)
})
