/**
 * The score: a pure function of `signals`, the tenant's policy and, for suppressions alone, of what
 * sent the event and when it was received. A policy is compiled once. Same input, same answer on
 * every machine; no clock, no I/O. Every point is accounted for: the weights of the reasons add up
 * to the score.
 */
import { z } from 'zod'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/telemetry/telemetry.ts'
import { toReasons } from './score-reasons.ts'
import { type CompiledPolicy, compileRules } from './score-rules.ts'
import { type Tallied, tallySignals } from './score-tally.ts'
import type { ScoringContext } from './suppressions.ts'

export type { ScoringContext } from './suppressions.ts'

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

/**
 * Compiles a policy to its scorer.
 * @returns a function from the six categories' signals and their context to score, action and
 * reasons
 */
export function compilePolicy(policy: Policy): Scorer {
  const compiled = compileRules(policy)
  return (signals, context) => assess(compiled, signals, context).score
}

/** A score with every step that led to it, for whoever explains it. */
export type Assessment = {
  score: Score
  /** Null when nothing scored. */
  tallied: Tallied | null
}

/** Scores an event under a compiled policy: the one path from signals to a score. */
export function assess(
  compiled: CompiledPolicy,
  signals: Signals,
  context: ScoringContext,
): Assessment {
  const tallied = tallySignals(compiled, signals, context)
  if (tallied === null) return { score: { score: 0, action: 'ALLOW', reasons: [] }, tallied }
  const { score } = tallied
  const action = toAction(score, compiled.thresholds)
  return { score: { score, action, reasons: toReasons(compiled, tallied) }, tallied }
}
