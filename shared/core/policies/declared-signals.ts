/**
 * The signals that a policy can weigh: those of the catalog, and those of the client that it
 * declares itself. A declared signal has no grade, so it is no critical evidence, and has a flag of
 * its own.
 */
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import {
  type Category,
  categories,
  type Grade,
  isServerCategory,
  type SignalCategory,
  type SignalType,
} from '#shared/core/signals/signal-definition.ts'
import { findSignal } from '#shared/core/signals/signals.ts'
import type { Policy } from './policy.ts'

/** What scoring needs of a signal's definition. */
export type ScoredSignal = {
  type: SignalType
  grade: Grade
  flag: Flag
  flagByValue?: Readonly<Record<string, Flag>>
  /** Whether the policy declares it and the catalog does not have it. */
  declared: boolean
}

/** The part of a policy that declares signals. */
export type Declaring = Pick<Policy, 'signals'>

const declaredFlag: Flag = 'TENANT_SIGNAL'

/**
 * Finds a signal by its name. The catalog comes first: a later catalog may have what a stored
 * policy declares.
 */
export function findScoredSignal(
  { signals }: Declaring,
  category: SignalCategory,
  name: string,
): ScoredSignal | undefined {
  const known = findSignal(category, name)
  if (known !== undefined) return { ...known, declared: false }
  if (isServerCategory(category)) return undefined
  const path = `${category}.${name}`
  if (signals === undefined || !Object.hasOwn(signals, path)) return undefined
  const { type } = signals[path]!
  return { type, grade: 'informational', flag: declaredFlag, declared: true }
}

/** A declared signal with the parts of its path. */
export type DeclaredSignal = {
  path: string
  category: Category
  name: string
  type: SignalType
  description: string
}

/** The declared signals that the catalog does not have, in the order of the document. */
export function listDeclared({ signals = {} }: Declaring): DeclaredSignal[] {
  return Object.entries(signals).flatMap(([path, { type, description = '' }]) => {
    const [category, name] = path.split('.') as [Category, string]
    if (!categories.includes(category) || findSignal(category, name) !== undefined) return []
    return { path, category, name, type, description }
  })
}
