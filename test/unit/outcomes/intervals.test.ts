import { describe, expect, test } from 'vitest'
import { toFeatures } from '#shared/core/outcomes/suggest/features.ts'
import { toShare } from '#shared/core/outcomes/suggest/fit-logistic.ts'
import { toIntervals } from '#shared/core/outcomes/suggest/intervals.ts'
import { toColumns, toCountedRows } from '#shared/core/outcomes/suggest/train.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import {
  companionSignals,
  makePlantedFleet,
  plantedWeights,
  uselessSignals,
} from '../../support/outcomes/planted-fleet.ts'

/** The most that the log likelihood of two shares can be when their log odds differ by so much. */
function profile([a, b, c, d]: readonly [number, number, number, number], logOdds: number): number {
  const at = (base: number) => {
    const [one, other] = [toShare(base + logOdds), toShare(base)]
    const sum = (hits: number, misses: number, share: number) =>
      hits * Math.log(share) + (misses === 0 ? 0 : misses * Math.log(1 - share))
    return sum(a, b, one) + sum(c, d, other)
  }
  let [low, high] = [-25, 25]
  for (let n = 0; n < 200; n++) {
    const [left, right] = [low + (high - low) / 3, high - (high - low) / 3]
    if (at(left) < at(right)) low = left
    else high = right
  }
  return at((low + high) / 2)
}

describe('an interval', () => {
  test.each([
    [600, 400, 100, 900],
    [12, 5, 300, 700],
    [4, 30, 50, 60],
  ] as const)('of one column ends where chance does: %i, %i beside %i, %i', (a, b, c, d) => {
    const rows = [
      { columns: [0], hits: a, misses: b },
      { columns: [], hits: c, misses: d },
    ]
    const { low, high } = toIntervals(rows, 1).get(0)!
    const best = profile([a, b, c, d], Math.log((a * d) / (b * c)))
    // The other column moves in a straight line, and the penalty is not quite nothing.
    for (const end of [low, high]) {
      expect(best - profile([a, b, c, d], end)).toBeGreaterThan(1.7)
      expect(best - profile([a, b, c, d], end)).toBeLessThan(2.2)
    }
    const ratio = Math.log((a * d) / (b * c))
    expect([low < ratio, ratio < high]).toEqual([true, true])
  })

  test('has no upper end where only fraud has the column, and is none where nobody has', () => {
    const rows = [
      { columns: [0], hits: 6, misses: 0 },
      { columns: [1], hits: 0, misses: 40 },
      { columns: [], hits: 100, misses: 300 },
    ]
    const intervals = toIntervals(rows, 3)
    const [fraud, honest] = [intervals.get(0)!, intervals.get(1)!]
    expect(fraud.low).toBeGreaterThan(0.5)
    expect(fraud.high).toBe(10)
    expect(honest.low).toBe(-10)
    expect(honest.high).toBeLessThan(-0.5)
    expect(intervals.has(2)).toBe(false)
  })

  const flagOfCount: Readonly<Record<string, string>> = {
    'users_per_device:86400': 'MANY_USERS_PER_DEVICE from 20',
    'platforms_per_device:2592000': 'PLATFORM_CHANGED from 15',
  }
  const truths = new Map([
    ...Object.entries(plantedWeights).map(([path, [, logOdds]]) => [path, logOdds] as const),
    ...[...Object.keys(uselessSignals), ...companionSignals].map((path) => [path, 0] as const),
  ])

  test.each([
    ['50,000 labels', 50_000, 3],
    ['1,000 labels', 1_000, 4],
  ])('of 95 % holds the planted weight in 95 % of cases: %s', (_, labels, fleets) => {
    const { features, columnsOf } = toFeatures(balancedPolicy)
    const places = new Map(features.map(({ name }, at) => [name, at]))
    let [inside, all] = [0, 0]
    for (let seed = 1; seed <= fleets; seed++) {
      const { table } = makePlantedFleet({ seed, sessions: 2_500_000, labels, draws: 5_000 })
      const columns = toColumns(table.rows, table, { features, columnsOf })
      const intervals = toIntervals(toCountedRows(table.rows, columns), features.length)
      for (const [path, truth] of truths) {
        const interval = intervals.get(places.get(flagOfCount[path] ?? path)!)
        if (interval === undefined) continue
        all++
        if (interval.low <= truth && truth <= interval.high) inside++
      }
    }
    expect(all).toBeGreaterThan(45 * fleets)
    // 2.5 standard errors of a share of some 160 and 210.
    expect(inside / all).toBeGreaterThan(0.91)
    expect(inside / all).toBeLessThan(0.985)
  })
})
