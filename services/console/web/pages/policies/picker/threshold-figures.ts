/** What the thresholds of a draft would mean, computed from the scores of a fleet. */
import {
  type AtThreshold,
  atThreshold,
  type ScoreCounts,
} from '#shared/core/outcomes/score-distribution.ts'

export type FleetScores = { counts: ScoreCounts; days: number; honest_users: number[] }
export type Thresholds = { review: number; block: number }
export type ThresholdName = keyof Thresholds

export type ThresholdFigures = AtThreshold & {
  /** Users and accounts of legitimate sessions with an alert, each once. */
  harmed_users: number
}

export const toFigures = (scores: FleetScores, threshold: number): ThresholdFigures => ({
  ...atThreshold(scores.counts, threshold, scores.days),
  harmed_users: scores.honest_users.slice(threshold).reduce((sum, users) => sum + users, 0),
})

/** The highest that each may be: BLOCK from 101 is never. */
export const thresholdMax: Thresholds = { review: 100, block: 101 }

/** Moves one threshold; REVIEW is never above BLOCK, so it takes the other along. */
export function moveThreshold(
  { review, block }: Thresholds,
  name: ThresholdName,
  to: number,
): Thresholds {
  const value = Math.min(thresholdMax[name], Math.max(1, Math.round(to)))
  return name === 'review'
    ? { review: value, block: Math.max(block, value) }
    : { review: Math.min(review, value), block: value }
}

/** Where a key moves a threshold; null for a key that does not. */
export function toMoved(key: string, name: ThresholdName, from: number): number | null {
  const moves: Record<string, number> = {
    ArrowLeft: from - 1,
    ArrowDown: from - 1,
    ArrowRight: from + 1,
    ArrowUp: from + 1,
    PageDown: from - 10,
    PageUp: from + 10,
    Home: 1,
    End: thresholdMax[name],
  }
  return Object.hasOwn(moves, key) ? moves[key]! : null
}
