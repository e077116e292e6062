/**
 * Computes the score: a pure function of `signals` and the tenant's policy. Suppressions also use
 * the SDK version, the platform and the time of receipt. A policy is compiled once. The weights of
 * the reasons add up to the score.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { type Score, toAction } from './score.ts'
import { toReasons } from './score-reasons.ts'
import { type CompiledPolicy, compileRules } from './score-rules.ts'
import { type Tallied, tallySignals } from './score-tally.ts'
import type { ScoringContext } from './suppressions.ts'

export type Scorer = (signals: Signals, context: ScoringContext) => Score

/**
 * Compiles a policy to its scorer.
 * @returns a function from the six categories' signals and their context to score, action and
 * reasons
 */
export function compilePolicy(policy: Policy): Scorer {
  const compiled = compileRules(policy)
  return (signals, context) => assess(compiled, signals, context).score
}

/** A score with all its steps, for explanations. */
export type Assessment = {
  score: Score
  /** Null when nothing scored. */
  tallied: Tallied | null
}

/** Scores an event under a compiled policy. Scorer and explanation both use it. */
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
