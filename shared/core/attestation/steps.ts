/**
 * The result of a check and the list of steps that leads to it. Steps are recorded in the order of
 * the check; the first that failed names the reason.
 */
import { type AttestationReason, Refusal } from './reasons.ts'

export const attestationProviders = ['key_attestation', 'app_attest', 'play_integrity'] as const
export type AttestationProvider = (typeof attestationProviders)[number]

/**
 * Where the attested key lies: `strongbox` is a chip of its own, `hardware` the secure part of the
 * processor. `none`: the evidence proves nothing.
 */
export type AttestationLevel = 'strongbox' | 'hardware' | 'software' | 'none'

export type AttestationStep = { step: string; ok: boolean; detail: string }

export type AttestationCheck = {
  provider: AttestationProvider
  verdict: 'verified' | 'rejected'
  /** Of the first failed step; null when verified. */
  reason: AttestationReason | null
  level: AttestationLevel
  /**
   * What the evidence says, in JSON's types: bytes in base64, instants in ms. When `level` is
   * `none`, they are what the sender wrote. `not_judged` names what the caller did not ask for.
   */
  facts: Record<string, unknown>
  steps: AttestationStep[]
}

export type StepLog = {
  /** Records a step that holds or fails with `reason`. @returns whether it holds */
  judge: (
    step: string,
    holds: boolean,
    reason: AttestationReason,
    details: { held: string; failed: string },
  ) => boolean
  /**
   * Records what `read` does: its result, or its `Refusal` as a failed step.
   * @returns null after a refusal
   */
  attempt: <T>(step: string, read: () => T, describe: (value: T) => string) => T | null
  /** Records a failed step. */
  fail: (step: string, refusal: Refusal) => void
  /** Records a step that holds. */
  pass: (step: string, detail: string) => void
  hasFailed: (steps: readonly string[]) => boolean
  end: (facts: Record<string, unknown>, level: AttestationLevel) => AttestationCheck
}

/** Starts the steps of one check. */
export function startSteps(provider: AttestationProvider): StepLog {
  const steps: AttestationStep[] = []
  let reason: AttestationReason | null = null
  const pass = (step: string, detail: string) => {
    steps.push({ step, ok: true, detail })
  }
  const fail = (step: string, refusal: Refusal) => {
    steps.push({ step, ok: false, detail: refusal.message })
    reason ??= refusal.reason
  }
  return {
    pass,
    fail,
    judge: (step, holds, code, { held, failed }) => {
      if (holds) pass(step, held)
      else fail(step, new Refusal(code, failed))
      return holds
    },
    attempt: (step, read, describe) => {
      try {
        const value = read()
        pass(step, describe(value))
        return value
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        fail(step, error)
        return null
      }
    },
    hasFailed: (names) => steps.some(({ step, ok }) => !ok && names.includes(step)),
    end: (facts, level) => {
      const verdict = reason === null ? 'verified' : 'rejected'
      return { provider, verdict, reason, level, facts, steps }
    },
  }
}
