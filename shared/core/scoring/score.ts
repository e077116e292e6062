/** Scores, actions, reasons and severities: what scoring answers. */
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
/** Why a score is what it is: a flag, the points it brought, and what proves it. */
export type Reason = z.infer<typeof reasonSchema>

export type Score = { score: number; action: Action; reasons: Reason[] }
export type Scorer = (signals: Signals, context: ScoringContext) => Score

/** The action that a score leads to. */
export function toAction(score: number, thresholds: Policy['thresholds']): Action {
  if (score >= thresholds.block) return 'BLOCK'
  return score >= thresholds.review ? 'REVIEW' : 'ALLOW'
}

/** Severity on the common 0..100 scale. */
export function toSeverity(score: number): 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL' {
  if (score >= 80) return 'CRITICAL'
  if (score >= 60) return 'HIGH'
  return score >= 40 ? 'MEDIUM' : 'LOW'
}
