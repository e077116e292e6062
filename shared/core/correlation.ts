/**
 * What the scorer knows of a device beyond one event, turned into points: velocity rules of the
 * policy against counts from ClickHouse. They raise `risk_score`, never `rasp_score`.
 */
import type { Flag } from './flags.ts'
import type { Policy, VelocityRule } from './policy.ts'
import { type Action, type Reason, type Score, toAction } from './scoring.ts'

/** Count of distinct things seen in a window up to the event, by `metric:windowSeconds`. */
export type Counts = ReadonlyMap<string, number>

/** The key of one count. */
export const countKey = (rule: Pick<VelocityRule, 'metric' | 'windowSeconds'>): string =>
  `${rule.metric}:${rule.windowSeconds}`

const flagOfMetric: Record<VelocityRule['metric'], Flag> = {
  sessions_per_device: 'HIGH_VELOCITY',
  users_per_device: 'MANY_USERS_PER_DEVICE',
}

export type Risk = { riskScore: number; action: Action; reasons: Reason[] }

/**
 * Raises an event's score by what the device's history shows.
 * @param counts the device's counts as of the event; a missing count reads as 0
 * @returns the risk on the same 0..100 scale; its reasons add up to it, heaviest first
 */
export function correlate(
  scored: Pick<Score, 'score' | 'reasons'>,
  counts: Counts,
  policy: Pick<Policy, 'velocity' | 'thresholds'>,
): Risk {
  const heaviest = new Map<Flag, { rule: VelocityRule; count: number }>()
  for (const rule of policy.velocity) {
    const count = counts.get(countKey(rule)) ?? 0
    if (count <= rule.threshold || rule.weight === 0) continue
    const code = flagOfMetric[rule.metric]
    const present = heaviest.get(code)
    if (present === undefined || rule.weight > present.rule.weight) {
      heaviest.set(code, { rule, count })
    }
  }
  const reasons = scored.reasons.map((reason) => ({ ...reason }))
  let riskScore = scored.score
  for (const [code, { rule, count }] of [...heaviest].sort(byWeight)) {
    const weight = Math.min(rule.weight, 100 - riskScore)
    riskScore += weight
    const evidence: Record<string, unknown> = {
      metric: rule.metric,
      count,
      threshold: rule.threshold,
      window: toWindowText(rule.windowSeconds),
    }
    if (weight < rule.weight) evidence.capped = true
    reasons.push({ code, weight, evidence })
  }
  reasons.sort((a, b) => b.weight - a.weight || (a.code < b.code ? -1 : 1))
  return { riskScore, action: toAction(riskScore, policy.thresholds), reasons }
}

function byWeight(
  [codeA, a]: [Flag, { rule: VelocityRule }],
  [codeB, b]: [Flag, { rule: VelocityRule }],
): number {
  return b.rule.weight - a.rule.weight || (codeA < codeB ? -1 : 1)
}

/** 300 -> "5m", 3600 -> "1h", 2592000 -> "30d". */
export function toWindowText(seconds: number): string {
  if (seconds % 86_400 === 0) return `${seconds / 86_400}d`
  if (seconds % 3_600 === 0) return `${seconds / 3_600}h`
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}
