/**
 * Turns risk features into points: velocity rules against counts from ClickHouse, the client's own
 * score, and missing categories. They raise `risk_score`, never `rasp_score`.
 */

import type { Policy, VelocityMetric, VelocityRule } from '#shared/core/policies/policy.ts'
import { type Action, type Reason, type Score, toAction } from '#shared/core/scoring/score.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'

/** Counts as of an event, by `metric:windowSeconds`. */
export type Counts = ReadonlyMap<string, number>

/** The key of one count. */
export const countKey = (rule: Pick<VelocityRule, 'metric' | 'windowSeconds'>): string =>
  `${rule.metric}:${rule.windowSeconds}`

const flagOfMetric: Record<VelocityMetric, Flag> = {
  sessions_per_device: 'HIGH_VELOCITY',
  users_per_device: 'MANY_USERS_PER_DEVICE',
  platforms_per_device: 'PLATFORM_CHANGED',
  signal_flips: 'SIGNAL_FLAPPING',
  devices_per_user: 'MANY_DEVICES_PER_USER',
  devices_per_session: 'SESSION_REUSED',
  new_device_of_user: 'NEW_DEVICE',
  countries_per_user: 'HIGH_VELOCITY',
  countries_per_device: 'HIGH_VELOCITY',
  networks_per_device: 'HIGH_VELOCITY',
  devices_per_network: 'HIGH_VELOCITY',
  users_per_network: 'HIGH_VELOCITY',
  impossible_travel: 'IMPOSSIBLE_TRAVEL',
  installs_per_phone: 'HIGH_VELOCITY',
  users_per_phone: 'MANY_USERS_PER_DEVICE',
}

/** A rule that an event triggered: its flag, its weight and its evidence. */
export type Finding = { code: Flag; weight: number; evidence: FindingEvidence }
type FindingEvidence = {
  metric: string
  count: number
  threshold: number
  /** The count that the highest step of the rule begins above; absent without steps. */
  above?: number
  /** "5m", "30d", or "event" where the event alone is the evidence. */
  window: string
  [more: string]: unknown
}

export type Risk = { riskScore: number; action: Action; reasons: Reason[] }

/**
 * The velocity rules that an event triggers.
 * @param counts as of the event; a missing count reads as 0
 * @param details more evidence by count key, such as which signal flips
 */
export function findVelocity(
  rules: readonly VelocityRule[],
  counts: Counts,
  details: ReadonlyMap<string, Record<string, unknown>> = new Map(),
): Finding[] {
  const findings: Finding[] = []
  // Nearly every event has no counts, and no threshold is below 0.
  if (counts.size === 0) return findings
  for (const rule of rules) {
    const key = countKey(rule)
    const count = counts.get(key) ?? 0
    if (count <= rule.threshold || rule.weight === 0) continue
    const { metric, threshold } = rule
    const step = rule.steps?.findLast(({ above }) => count > above)
    const weight = step?.weight ?? rule.weight
    const window = toWindowText(rule.windowSeconds)
    const above = step === undefined ? {} : { above: step.above }
    const evidence = { metric, count, threshold, ...above, window, ...details.get(key) }
    findings.push({ code: flagOfMetric[metric], weight, evidence })
  }
  return findings
}

/** The part of a policy that limits how far findings raise a score. */
export type RiskLimits = Pick<Policy, 'thresholds' | 'correlationAloneMax'>

/**
 * Raises an event's score by its findings. Of the findings with one flag only the heaviest counts,
 * of equals the first. A weight that would raise the score beyond its limit is reduced, and its
 * evidence has `capped`.
 * @returns the risk on the same 0..100 scale; its reasons add up to it, heaviest first
 */
export function correlate(
  scored: Pick<Score, 'score' | 'reasons'>,
  findings: readonly Finding[],
  limits: RiskLimits,
): Risk {
  const heaviest = new Map<Flag, Finding>()
  for (const finding of findings) {
    const present = heaviest.get(finding.code)
    if (present === undefined || finding.weight > present.weight) {
      heaviest.set(finding.code, finding)
    }
  }
  const reasons = scored.reasons.map((reason) => ({ ...reason }))
  const ceiling = findCeiling(scored.score, limits)
  let riskScore = scored.score
  for (const { code, weight: full, evidence } of [...heaviest.values()].sort(byWeight)) {
    const weight = Math.min(full, ceiling - riskScore)
    riskScore += weight
    reasons.push({
      code,
      weight,
      evidence: weight < full ? { ...evidence, capped: true } : evidence,
    })
  }
  reasons.sort(byWeight)
  return { riskScore, action: toAction(riskScore, limits.thresholds), reasons }
}

/** The highest score that findings may raise an event to. */
function findCeiling(score: number, { thresholds, correlationAloneMax }: RiskLimits): number {
  const alone = toAction(score, thresholds) === 'ALLOW'
  if (!alone || correlationAloneMax === 'BLOCK') return 100
  return Math.min(100, Math.max(score, thresholds.block - 1))
}

/** The order of reasons: heaviest first, then by code. */
export function byWeight(a: { code: string; weight: number }, b: { code: string; weight: number }) {
  return b.weight - a.weight || (a.code < b.code ? -1 : 1)
}

/** A window in its largest whole unit: 300 -> "5m", 3600 -> "1h", 2592000 -> "30d". */
export function toWindowText(seconds: number): string {
  if (seconds % 86_400 === 0) return `${seconds / 86_400}d`
  if (seconds % 3_600 === 0) return `${seconds / 3_600}h`
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}
