/**
 * Compares the client's score with ours. The client's is advisory and may be anything, so it is
 * compared only where it is on our scale. A score that cannot be compared is no evidence, like a
 * signal that was not measured.
 */

import type { Policy } from '#shared/core/policies/policy.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import { isServerCategory } from '#shared/core/signals/signal-definition.ts'
import {
  readClientAction,
  readClientScore,
  type Telemetry,
} from '#shared/core/telemetry/submission.ts'
import type { Finding } from './correlation.ts'

/**
 * The difference of two scores, in whole points of 0..100.
 *
 * The typical case is a client score of 0 where the signals score 80: an attacker who can forge one
 * number forges the score. A client too old to know the signal looks the same, so the rule that
 * uses the difference should weigh little. These are no difference:
 * - a score outside 0..100 or not finite: -1 is "no score", others are sums without a bound;
 * - any score with an empty action: a client that does not score;
 * - a fraction between 0 and 1, or at most 1 beside an action above ALLOW: a scale that ends at 1.
 * @param raspScore ours, 0..100
 */
export function measureScoreMismatch(scorer: Telemetry['scorer'], raspScore: number): number {
  const own = readClientScore(scorer)
  if (!(own >= 0 && own <= 100)) return 0
  if (own > 0 && own < 1) return 0
  const action = readClientAction(scorer).trim().toUpperCase()
  if (action === '') return 0
  if (own <= 1 && (action === 'REVIEW' || action === 'BLOCK')) return 0
  return Math.round(Math.abs(own - raspScore))
}

/**
 * Whether the service's own signals are a part of the score. A client cannot know them, so its score
 * is not compared with such a one.
 */
export const hasServerEvidence = (reasons: readonly Reason[]): boolean =>
  reasons.some(({ evidence: { signals } }) => Array.isArray(signals) && signals.some(isSeenHere))

const isSeenHere = (path: unknown): boolean =>
  typeof path === 'string' && isServerCategory(path.split('.')[0]!)

/**
 * Applies the policy's rule on score mismatches.
 * @param raspScore ours, 0..100
 * @returns null when the rule is off or the difference is not above its threshold
 */
export function findScoreMismatch(
  scorer: Telemetry['scorer'],
  raspScore: number,
  { scoreMismatch: rule }: Pick<Policy, 'scoreMismatch'>,
): Finding | null {
  if (rule === null || rule.weight === 0) return null
  const difference = measureScoreMismatch(scorer, raspScore)
  if (difference <= rule.threshold) return null
  return {
    code: 'SCORE_MISMATCH',
    weight: rule.weight,
    evidence: {
      metric: 'score_difference',
      count: difference,
      threshold: rule.threshold,
      window: 'event',
      client_score: readClientScore(scorer),
    },
  }
}
