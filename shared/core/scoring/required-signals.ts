/**
 * Required signals: what a policy wants every event to measure. An event without one of them gets
 * points and the flag SIGNALS_MISSING at once, whatever other devices send.
 */
import type { RequiredSignals } from '#shared/core/policies/policy.ts'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import type { Reason } from './score.ts'

/** A signal, or with the name null any signal of a category. */
export type Required = { path: string; category: Category; name: string | null }

export type Requirement = { weight: number; signals: readonly Required[] }

/** @returns null when nothing is required */
export function compileRequirement(required: RequiredSignals | undefined): Requirement | null {
  if (required === undefined || required.weight === 0) return null
  const signals = [...new Set(required.signals)].sort().flatMap((path) => {
    const [category, name] = path.split('.') as [Category, string]
    // A document of a later release may name a category that this one does not know.
    return categories.includes(category) ? { path, category, name: name === '*' ? null : name } : []
  })
  return signals.length === 0 ? null : { weight: required.weight, signals }
}

/** The required signals and categories that an event did not measure. */
export function findMissing(requirement: Requirement | null, signals: Signals): string[] {
  if (requirement === null) return []
  const missing: string[] = []
  for (const { path, category, name } of requirement.signals) {
    const sent = signals[category]
    const measured =
      name === null
        ? Object.values(sent).some(isMeasured)
        : Object.hasOwn(sent, name) && isMeasured(sent[name])
    if (!measured) missing.push(path)
  }
  return missing
}

/** Whether a value was measured: `null` and absence say that it was not. */
export const isMeasured = (value: unknown): boolean => value !== null && value !== undefined

/** The reason of an event that lacks required signals. */
export function toMissingReason(missing: readonly string[], weight: number): Reason {
  return {
    code: 'SIGNALS_MISSING',
    weight,
    evidence: {
      metric: 'required_signals',
      count: missing.length,
      threshold: 0,
      window: 'event',
      missing: [...missing],
    },
  }
}
