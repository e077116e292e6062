/**
 * How the scores of a fleet's sessions are distributed, by what the sessions turned out to be, and
 * what a threshold would mean: alerts a day, fraud caught and missed, honest users harmed. The
 * threshold picker, the percentile of a score and the comparison of policies read it.
 */
import { type Rate, toRate } from './wilson.ts'

/** Sessions by score: 101 counts, of 0 to 100. Scores between have the share of a model. */
export type ScoreCounts = { fraud: number[]; legitimate: number[]; unlabelled: number[] }

/** The kinds of sessions that are counted. */
export const countedOutcomes = ['fraud', 'legitimate', 'unlabelled'] as const
type CountedOutcome = (typeof countedOutcomes)[number]

export const noScores = (): ScoreCounts => ({
  fraud: zeros(),
  legitimate: zeros(),
  unlabelled: zeros(),
})
const zeros = (): number[] => new Array<number>(101).fill(0)

/** What a threshold means: every session with that score or more has an alert. */
export type AtThreshold = {
  threshold: number
  alerts: number
  alerts_a_day: number
  caught: number
  missed: number
  /** Legitimate sessions with an alert. */
  harmed: number
  /** Of the fraud, what has an alert. */
  recall: Rate
  /** Of the labelled sessions with an alert, what is fraud. */
  precision: Rate
  /** Of the legitimate sessions, those with an alert. */
  harm: Rate
}

const sumFrom = (counts: readonly number[], from: number): number => {
  let sum = 0
  for (let score = from; score < counts.length; score++) sum += counts[score]!
  return sum
}

/** All sessions with this score or more. */
export const countAlerts = (counts: ScoreCounts, threshold: number): number =>
  countedOutcomes.reduce((sum, one) => sum + sumFrom(counts[one], threshold), 0)

/** @param days that the sessions are of */
export function atThreshold(counts: ScoreCounts, threshold: number, days: number): AtThreshold {
  const above = (outcome: CountedOutcome) => sumFrom(counts[outcome], threshold)
  const [caught, harmed] = [above('fraud'), above('legitimate')]
  const fraud = sumFrom(counts.fraud, 0)
  const alerts = countAlerts(counts, threshold)
  return {
    threshold,
    alerts,
    alerts_a_day: days > 0 ? alerts / days : 0,
    caught,
    missed: fraud - caught,
    harmed,
    recall: toRate(caught, fraud),
    precision: toRate(caught, caught + harmed),
    harm: toRate(harmed, sumFrom(counts.legitimate, 0)),
  }
}

/** What every threshold from 0 to 101 means; 101 is never. */
export const atEveryThreshold = (counts: ScoreCounts, days: number): AtThreshold[] =>
  Array.from({ length: 102 }, (_, threshold) => atThreshold(counts, threshold, days))

/** What is caught and harmed with a number of alerts. */
export type AtAlerts = { caught: number; harmed: number; recall: number; precision: number }

/**
 * What a number of alerts finds, if those with the highest scores get them. Of equal scores a part
 * gets one, as if drawn by lot, so that policies with other scores can be compared.
 */
export function atAlerts(counts: ScoreCounts, alerts: number): AtAlerts {
  let left = alerts
  let caught = 0
  let harmed = 0
  for (let score = 100; score >= 0 && left > 0; score--) {
    const here = countedOutcomes.reduce((sum, one) => sum + counts[one][score]!, 0)
    if (here === 0) continue
    const share = Math.min(1, left / here)
    caught += share * counts.fraud[score]!
    harmed += share * counts.legitimate[score]!
    left -= here
  }
  const fraud = sumFrom(counts.fraud, 0)
  return {
    caught,
    harmed,
    recall: fraud === 0 ? 0 : caught / fraud,
    precision: caught + harmed === 0 ? 0 : caught / (caught + harmed),
  }
}

/**
 * The percentile of a score: how many percent of the sessions have a lower one.
 * @returns with one decimal, rounded down, so that 100 is never said; null without sessions
 */
export function toRiskPercentile(counts: ScoreCounts, score: number): number | null {
  const all = countAlerts(counts, 0)
  if (all === 0) return null
  return Math.floor((1000 * (all - countAlerts(counts, score))) / all) / 10
}
