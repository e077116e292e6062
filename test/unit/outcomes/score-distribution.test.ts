import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  atAlerts,
  atEveryThreshold,
  atThreshold,
  countAlerts,
  noScores,
  type ScoreCounts,
  toRiskPercentile,
} from '#shared/core/outcomes/score-distribution.ts'
import { toRate } from '#shared/core/outcomes/wilson.ts'

const outcomes = ['fraud', 'legitimate', 'unlabelled'] as const
const sessions = fc.array(
  fc.record({ score: fc.integer({ min: 0, max: 100 }), outcome: fc.constantFrom(...outcomes) }),
  { maxLength: 60 },
)
type Session = { score: number; outcome: (typeof outcomes)[number] }

function toCounts(all: readonly Session[]): ScoreCounts {
  const counts = noScores()
  for (const { score, outcome } of all) counts[outcome][score]!++
  return counts
}

describe('a threshold', () => {
  test('counts what a list of sessions says', () => {
    fc.assert(
      fc.property(sessions, fc.integer({ min: 0, max: 101 }), (all, threshold) => {
        const above = all.filter(({ score }) => score >= threshold)
        const of = (list: readonly Session[], wanted: string) =>
          list.filter(({ outcome }) => outcome === wanted).length
        const [caught, harmed] = [of(above, 'fraud'), of(above, 'legitimate')]
        expect(atThreshold(toCounts(all), threshold, 7)).toEqual({
          threshold,
          alerts: above.length,
          alerts_a_day: above.length / 7,
          caught,
          missed: of(all, 'fraud') - caught,
          harmed,
          recall: toRate(caught, of(all, 'fraud')),
          precision: toRate(caught, caught + harmed),
          harm: toRate(harmed, of(all, 'legitimate')),
        })
      }),
    )
  })

  test('a higher one never has more alerts; 101 has none', () => {
    fc.assert(
      fc.property(sessions, (all) => {
        const every = atEveryThreshold(toCounts(all), 30)
        for (let at = 1; at < every.length; at++) {
          expect(every[at]!.alerts).toBeLessThanOrEqual(every[at - 1]!.alerts)
        }
        expect([every[0]!.alerts, every[101]!.alerts]).toEqual([all.length, 0])
      }),
    )
  })
})

describe('a number of alerts', () => {
  test('finds what the threshold with as many finds', () => {
    fc.assert(
      fc.property(sessions, fc.integer({ min: 0, max: 100 }), (all, threshold) => {
        const counts = toCounts(all)
        const found = atAlerts(counts, countAlerts(counts, threshold))
        const { caught, harmed } = atThreshold(counts, threshold, 1)
        expect([found.caught, found.harmed]).toEqual([caught, harmed])
      }),
    )
  })

  test('of equal scores finds the share that gets an alert', () => {
    const counts = toCounts([
      { score: 90, outcome: 'fraud' },
      { score: 50, outcome: 'fraud' },
      { score: 50, outcome: 'legitimate' },
      { score: 50, outcome: 'unlabelled' },
      { score: 50, outcome: 'unlabelled' },
    ])
    expect(atAlerts(counts, 3)).toEqual({ caught: 1.5, harmed: 0.5, recall: 0.75, precision: 0.75 })
  })
})

describe('a percentile', () => {
  test('is the share with a lower score, never 100', () => {
    fc.assert(
      fc.property(sessions, fc.integer({ min: 0, max: 100 }), (all, score) => {
        const percentile = toRiskPercentile(
          toCounts([...all, { score, outcome: 'unlabelled' }]),
          score,
        )
        const lower = all.filter((one) => one.score < score).length
        expect(percentile).toBe(Math.floor((1000 * lower) / (all.length + 1)) / 10)
        expect(percentile).toBeLessThan(100)
      }),
    )
  })

  test('of no sessions is unknown', () => {
    expect(toRiskPercentile(noScores(), 40)).toBeNull()
  })
})
