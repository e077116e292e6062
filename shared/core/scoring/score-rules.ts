/**
 * Compiles a policy to rules: by category, the signals that have a weight, and how to weigh their
 * values.
 */

import type { Policy, SignalWeight } from '#shared/core/policies/policy.ts'
import type { Flag } from '#shared/core/signals/flags.ts'
import { type Category, categories } from '#shared/core/signals/signal-definition.ts'
import { findSignal } from '#shared/core/signals/signals.ts'
import { withSpellings } from '#shared/core/signals/vocabulary.ts'
import { type CompiledSuppression, compileSuppressions } from './suppressions.ts'

/** One signal that can score. */
export type Rule = {
  /** `category.signal` */
  path: string
  flag: Flag
  /** Whether it is of critical grade, for strong evidence. */
  critical: boolean
  /** Index of its group in the category, -1 for none. */
  group: number
  /** The points of a value; 0 when it is clean. */
  points: (value: unknown) => number
  /** Its suppressions, in the order of the document; null when there are none. */
  suppressions: readonly CompiledSuppression[] | null
}

export type CategoryRules = {
  category: Category
  cap: number
  soft: boolean
  rules: ReadonlyMap<string, Rule>
  /** Rules that act on `false`; null when there are none, so that `false` needs no look-up. */
  falseRules: ReadonlyMap<string, Rule> | null
  groupCaps: readonly number[]
}

export type HalvingRule = { category: Category; confirming: ReadonlySet<string> }

export type CompiledPolicy = {
  thresholds: Policy['thresholds']
  categories: readonly CategoryRules[]
  halving: readonly HalvingRule[]
  /** How many critical signals fill a category; infinity when that is off. */
  strongFrom: number
  floors: ReadonlyMap<string, number>
}

/** Compiles a policy, without signals that are not in the catalog. */
export function compileRules(policy: Policy): CompiledPolicy {
  const compiled = categories.map((category) => compileCategory(category, policy))
  addSuppressions(policy, compiled)
  return {
    thresholds: policy.thresholds,
    categories: compiled,
    halving: compileHalving(policy.halving),
    strongFrom: policy.strongEvidence?.signals ?? Number.POSITIVE_INFINITY,
    floors: compileFloors(policy.floors),
  }
}

function compileCategory(category: Category, policy: Policy): CategoryRules {
  const { cap, signals, groups = [] } = policy.categories[category]
  const rules = new Map<string, Rule>()
  const falseRules = new Map<string, Rule>()
  for (const [name, weight] of Object.entries(signals)) {
    const definition = findSignal(category, name)
    if (definition === undefined || weight === 0) continue
    const rule: Rule = {
      path: `${category}.${name}`,
      flag: definition.flag,
      critical: definition.grade === 'critical',
      group: groups.findIndex((group) => group.signals.includes(name)),
      points: compileWeight(withSpellings(category, name, weight)),
      suppressions: null,
    }
    rules.set(name, rule)
    if (typeof weight === 'object' && 'whenFalse' in weight) falseRules.set(name, rule)
  }
  return {
    category,
    cap,
    soft: policy.softCategories.includes(category),
    rules,
    falseRules: falseRules.size === 0 ? null : falseRules,
    groupCaps: groups.map((group) => group.cap),
  }
}

function addSuppressions({ suppressions }: Policy, compiled: readonly CategoryRules[]): void {
  const rules = compiled.flatMap((category) => [...category.rules.values()])
  const bySignal = compileSuppressions(
    suppressions,
    rules.map((rule) => rule.path),
  )
  for (const rule of rules) rule.suppressions = bySignal.get(rule.path) ?? null
}

function compileWeight(weight: SignalWeight): (value: unknown) => number {
  if (typeof weight === 'number') return (value) => (value === true ? weight : 0)
  if ('whenFalse' in weight) return (value) => (value === false ? weight.whenFalse : 0)
  if ('atLeast' in weight) {
    return (value) => (typeof value === 'number' && value >= weight.atLeast ? weight.weight : 0)
  }
  const values = new Map(Object.entries(weight.values))
  const unless = weight.unless ?? []
  return (value) => {
    if (typeof value === 'string') return values.get(value) ?? 0
    if (!Array.isArray(value)) return 0
    if (value.length === 0) return values.get('(empty)') ?? 0
    if (unless.some((item) => value.includes(item))) return 0
    let highest = 0
    for (const item of value) highest = Math.max(highest, values.get(item) ?? 0)
    return highest
  }
}

/** Merges the rules of one category: any of their signals confirms. */
function compileHalving(rules: Policy['halving']): HalvingRule[] {
  const byCategory = new Map<Category, Set<string>>()
  for (const { category, confirmedBy } of rules) {
    const confirming = byCategory.get(category) ?? new Set()
    for (const path of confirmedBy) confirming.add(path)
    byCategory.set(category, confirming)
  }
  return [...byCategory].map(([category, confirming]) => ({ category, confirming }))
}

function compileFloors(floors: Policy['floors']): Map<string, number> {
  const highest = new Map<string, number>()
  for (const { score, signals } of floors) {
    for (const path of signals) highest.set(path, Math.max(score, highest.get(path) ?? 0))
  }
  return highest
}
