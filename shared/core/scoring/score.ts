/** The result of scoring: score, action, reasons and severity. */

export const actions = ['ALLOW', 'REVIEW', 'BLOCK'] as const
export type Action = (typeof actions)[number]

/** A part of a score: a flag, its points, and its evidence. */
export type Reason = { code: string; weight: number; evidence: Record<string, unknown> }

export type Score = { score: number; action: Action; reasons: Reason[] }

/**
 * The action of a score.
 * @param score 0..100
 */
export function toAction(score: number, thresholds: { review: number; block: number }): Action {
  if (score >= thresholds.block) return 'BLOCK'
  return score >= thresholds.review ? 'REVIEW' : 'ALLOW'
}

/** Severities of alerts, the lowest first. */
export const severities = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
export type Severity = (typeof severities)[number]

/** The lowest risk score of each severity. A severity ends where the next one begins. */
const severityFloors: Record<Severity, number> = { LOW: 0, MEDIUM: 40, HIGH: 60, CRITICAL: 80 }

/**
 * The severity of a risk score.
 * @param score 0..100
 */
export function toSeverity(score: number): Severity {
  return severities.findLast((severity) => score >= severityFloors[severity]) ?? 'LOW'
}

/** The risk scores of a severity: from the first number on, below the second. */
export function toScoreRange(severity: Severity): readonly [from: number, below: number] {
  const next = severities[severities.indexOf(severity) + 1]
  return [severityFloors[severity], next === undefined ? 101 : severityFloors[next]]
}
