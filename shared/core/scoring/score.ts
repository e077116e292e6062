/** The result of scoring: score, action, reasons and severity. */
import { z } from 'zod'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import type { ScoringContext } from './suppressions.ts'

export const actions = ['ALLOW', 'REVIEW', 'BLOCK'] as const
export type Action = (typeof actions)[number]

export const reasonSchema = z.object({
  code: z.string(),
  weight: z.number().int(),
  evidence: z.record(z.string(), z.unknown()),
})
/** A part of a score: a flag, its points, and its evidence. */
export type Reason = z.infer<typeof reasonSchema>

export type Score = { score: number; action: Action; reasons: Reason[] }
export type Scorer = (signals: Signals, context: ScoringContext) => Score

/**
 * The action of a score.
 * @param score 0..100
 */
export function toAction(score: number, thresholds: Policy['thresholds']): Action {
  if (score >= thresholds.block) return 'BLOCK'
  return score >= thresholds.review ? 'REVIEW' : 'ALLOW'
}

/** Severities of alerts, the lowest first. */
export const severities = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
export type Severity = (typeof severities)[number]

/**
 * The severity of a risk score.
 * @param score 0..100
 */
export function toSeverity(score: number): Severity {
  if (score >= 80) return 'CRITICAL'
  if (score >= 60) return 'HIGH'
  return score >= 40 ? 'MEDIUM' : 'LOW'
}
