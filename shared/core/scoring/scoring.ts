/**
 * Computes the score: a pure function of `signals`, the server signals and the tenant's policy.
 * Suppressions also use the SDK version, the platform and the time of receipt. A policy is compiled
 * once. The weights of the reasons add up to the score.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import {
  noServerSignals,
  type ServerSignals,
  type Signals,
} from '#shared/core/signals/signal-definition.ts'
import { type Score, toAction } from './score.ts'
import { toReasons } from './score-reasons.ts'
import { type CompiledPolicy, compileRules } from './score-rules.ts'
import { type Observed, type Tallied, tallySignals } from './score-tally.ts'
import type { ScoringContext } from './suppressions.ts'

export type Scorer = (signals: Signals, context: ScoringContext, server?: ServerSignals) => Score

/**
 * Compiles a policy to its scorer.
 * @returns a function from the six categories' signals, their context and the server signals (none
 * when left out) to score, action and reasons
 */
export function compilePolicy(policy: Policy): Scorer {
  const compiled = compileRules(policy)
  return (signals, context, server = noServerSignals) =>
    assess(compiled, { signals, server, context }).score
}

/** A score with all its steps, for explanations. */
export type Assessment = {
  score: Score
  /** Null when nothing scored. */
  tallied: Tallied | null
}

/** Scores an event under a compiled policy. Scorer and explanation both use it. */
export function assess(compiled: CompiledPolicy, observed: Observed): Assessment {
  const tallied = tallySignals(compiled, observed)
  if (tallied === null) return { score: { score: 0, action: 'ALLOW', reasons: [] }, tallied }
  const { score } = tallied
  const action = toAction(score, compiled.thresholds)
  return { score: { score, action, reasons: toReasons(compiled, tallied) }, tallied }
}
