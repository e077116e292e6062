/**
 * How far the client's own verdict is from ours. The client's is advisory and may be anything; what
 * is measured here is only whether it speaks of the same device, and only where it speaks on our
 * scale. A verdict that cannot be compared is no evidence, just as a signal that was not measured
 * is none.
 */

import type { Policy } from '#shared/core/policies/policy.ts'
import type { Finding } from './correlation.ts'

/** The client's own verdict, as it is submitted. */
export type ClientVerdict = {
  rasp_score: number
  rasp_action: string
  rasp_flags: readonly string[]
}

/**
 * The difference of two scores, in whole points of 0..100.
 *
 * A client that says 0 while its signals score 80 is the case this is for: an attacker who can
 * forge one number forges the verdict, and a client too old to score the signal looks the same. So
 * 0 counts as the verdict it is, and the rule that uses the difference is to weigh little. What
 * says nothing of the device reads as no difference:
 * - a score outside 0..100 or not finite: an error code or a sum without a bound;
 * - a fraction between 0 and 1, or at most 1 beside an action above ALLOW: a scale that ends at 1;
 * - 0 without any action and any flag: a client that does not score.
 * @param raspScore ours, 0..100
 */
export function measureScoreMismatch(scorer: ClientVerdict, raspScore: number): number {
  const own = scorer.rasp_score
  if (!(own >= 0 && own <= 100)) return 0
  if (own > 0 && own < 1) return 0
  const action = scorer.rasp_action.trim().toUpperCase()
  if (own <= 1 && (action === 'REVIEW' || action === 'BLOCK')) return 0
  if (own === 0 && action === '' && scorer.rasp_flags.length === 0) return 0
  return Math.round(Math.abs(own - raspScore))
}

/**
 * What the policy holds of the difference.
 * @param raspScore ours, 0..100
 * @returns null when the rule is off or the difference is not above its threshold
 */
export function findScoreMismatch(
  scorer: ClientVerdict,
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
      client_score: scorer.rasp_score,
    },
  }
}
