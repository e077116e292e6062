/**
 * Compiles a policy to rules: by category, the signals that have a weight, and how to weigh their
 * values.
 */

import { findScoredSignal, type ScoredSignal } from '#shared/core/policies/declared-signals.ts'
import {
  type CategoryPolicy,
  listCategoryPolicies,
  type Policy,
  type SignalWeight,
} from '#shared/core/policies/policy.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import type { Category, SignalCategory } from '#shared/core/signals/signal-definition.ts'
import { isPlainNumber } from '#shared/core/signals/signals.ts'
import { toMeaning, withSpellings } from '#shared/core/signals/vocabulary.ts'
import { compileRequirement, type Requirement } from './required-signals.ts'
import { type CompiledSuppression, compileSuppressions } from './suppressions.ts'
import { compileTrust, type Trust } from './trusted-installers.ts'
import { findVerdictKind, type VerdictKind } from './verified-verdicts.ts'

/** One signal that can score. */
export type Rule = {
  /** `category.signal` */
  path: string
  /** The flag of a value that scores. */
  flagOf: (value: unknown) => Flag
  /** Whether it is of critical grade, for strong evidence. */
  critical: boolean
  /** Index of its group in the category, -1 for none. */
  group: number
  /** The points of a value; 0 when it is clean. */
  points: (value: unknown) => number
  /** Its suppressions, in the order of the document; null when there are none. */
  suppressions: readonly CompiledSuppression[] | null
  /** Whether it scores nothing when the installer is trusted. */
  silenced: boolean
  /** The verdict that it is the client's word of; null for most signals, and in older documents. */
  wordOf: VerdictKind | null
}

export type CategoryRules = {
  category: SignalCategory
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
  /** By signal, the floor of the points that some of its values have. */
  valueFloors: ReadonlyMap<string, ReadonlyMap<number, number>>
  /** Floors that need every one of their signals, sorted. */
  jointFloors: readonly { score: number; signals: readonly string[] }[]
  trust: Trust | null
  requirement: Requirement | null
}

/** Compiles a policy, without signals that neither the catalog nor the policy declares. */
export function compileRules(policy: Policy): CompiledPolicy {
  const trust = compileTrust(policy.trustedInstallers)
  const compiled = listCategoryPolicies(policy).map((own) => compileCategory(own, policy, trust))
  addSuppressions(policy, compiled)
  return {
    thresholds: policy.thresholds,
    categories: compiled,
    halving: compileHalving(policy.halving),
    strongFrom: policy.strongEvidence?.signals ?? Number.POSITIVE_INFINITY,
    ...compileFloors(policy, compiled),
    trust,
    requirement: compileRequirement(policy.requiredSignals),
  }
}

function compileCategory(
  { category, cap, signals, groups = [] }: CategoryPolicy & { category: SignalCategory },
  policy: Policy,
  trust: Trust | null,
): CategoryRules {
  const rules = new Map<string, Rule>()
  const falseRules = new Map<string, Rule>()
  for (const [name, weight] of Object.entries(signals)) {
    const definition = findScoredSignal(policy, category, name)
    if (definition === undefined || weight === 0) continue
    const path = `${category}.${name}`
    const rule: Rule = {
      path,
      flagOf: compileFlag({ category, name }, definition, withSpellings(category, name, weight)),
      critical: definition.grade === 'critical',
      group: groups.findIndex((group) => group.signals.includes(name)),
      points: compileWeight(withSpellings(category, name, weight), definition),
      suppressions: null,
      silenced: trust?.silences.has(path) ?? false,
      wordOf: policy.serverCategories?.attestation === undefined ? null : findVerdictKind(path),
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

/**
 * A value of another type than that of a signal of the catalog is refused at the edge, as is a
 * number that a double cannot hold. Of declared signals they score nothing.
 */
function compileWeight(
  weight: SignalWeight,
  { type, declared }: ScoredSignal,
): (value: unknown) => number {
  const points = weigh(weight)
  if (!declared || typeof weight !== 'object') return points
  if ('atLeast' in weight) {
    return (value) => (typeof value === 'number' && isPlainNumber(value) ? points(value) : 0)
  }
  if (!('values' in weight)) return points
  return (value) => ((type === 'strings') === Array.isArray(value) ? points(value) : 0)
}

/** @returns the points of each value by the form of the weight */
export function weigh(weight: SignalWeight): (value: unknown) => number {
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

/** Of a list, the flag of the item with the most points; of equals that of the first flag. */
function compileFlag(
  signal: SignalName,
  { flag, flagByValue }: ScoredSignal,
  weight: SignalWeight,
): (value: unknown) => Flag {
  if (flagByValue === undefined || typeof weight !== 'object' || !('values' in weight)) {
    return () => flag
  }
  const byFlag = splitByFlag(signal, { flag, flagByValue }, weight).map((one) => {
    return { flag: one.flag, points: weigh(one.weight) }
  })
  return (value) => {
    const points = byFlag.map((one) => one.points(value))
    return byFlag[points.indexOf(Math.max(...points))]!.flag
  }
}

type ValueWeight = Extract<SignalWeight, { values: unknown }>

type SignalName = { category: SignalCategory; name: string }

/**
 * The weight of each flag's values alone, in the order of the flags' first values. Every spelling
 * of a value has its flag.
 */
export function splitByFlag(
  { category, name }: SignalName,
  { flag, flagByValue = {} }: Pick<ScoredSignal, 'flag' | 'flagByValue'>,
  { values, unless }: ValueWeight,
): { flag: Flag; weight: ValueWeight }[] {
  const flagOf = (value: string) => {
    const meaning = toMeaning(category, name, value)
    return Object.hasOwn(flagByValue, meaning) ? flagByValue[meaning]! : flag
  }
  return [flag, ...new Set(Object.values(flagByValue))].map((one) => {
    const own = Object.entries(values).filter(([value]) => flagOf(value) === one)
    const weight = { values: Object.fromEntries(own), ...(unless === undefined ? {} : { unless }) }
    return { flag: one, weight }
  })
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

/** Floors as they act: that of soft signals alone ends at the soft limit, unless it lifts past it. */
function compileFloors(
  policy: Policy,
  compiled: readonly CategoryRules[],
): Pick<CompiledPolicy, 'floors' | 'valueFloors' | 'jointFloors'> {
  const softMax = toSoftLimit(policy.thresholds)
  const isSoft = (path: string) =>
    policy.softCategories.includes(path.slice(0, path.indexOf('.')) as SignalCategory)
  const highest = new Map<string, number>()
  const byValue = new Map<string, Map<number, number>>()
  const joint: { score: number; signals: string[] }[] = []
  for (const { score, signals, need, values, pastSoftLimit = false } of policy.floors) {
    const limit = (paths: readonly string[]) =>
      !pastSoftLimit && paths.every(isSoft) ? Math.min(softMax, score) : score
    if (need === 'all') {
      if (signals.length === 0) continue
      joint.push({ score: limit(signals), signals: [...new Set(signals)].sort() })
      continue
    }
    for (const path of signals) {
      if (values === undefined) highest.set(path, Math.max(limit([path]), highest.get(path) ?? 0))
      else
        addValueFloor(byValue, {
          path,
          points: pointsOf(compiled, path, values),
          score: limit([path]),
        })
    }
  }
  return { floors: highest, valueFloors: byValue, jointFloors: joint }
}

/** What the values of a signal score, as a text or as the one item of a list. */
function pointsOf(
  compiled: readonly CategoryRules[],
  path: string,
  values: readonly string[],
): number[] {
  const at = path.indexOf('.')
  const category = compiled.find((one) => one.category === path.slice(0, at))
  const rule = category?.rules.get(path.slice(at + 1))
  if (rule === undefined) return []
  return values
    .map((value) => (value === '(empty)' ? rule.points([]) : rule.points([value])))
    .filter((points) => points > 0)
}

function addValueFloor(
  byValue: Map<string, Map<number, number>>,
  { path, points, score }: { path: string; points: readonly number[]; score: number },
): void {
  const floors = byValue.get(path) ?? new Map<number, number>()
  byValue.set(path, floors)
  for (const one of points) floors.set(one, Math.max(score, floors.get(one) ?? 0))
}

/** The most points of all soft categories together. */
export function toSoftLimit(thresholds: Policy['thresholds']): number {
  return thresholds.block - 1
}
