/**
 * What a suggestion weighs: the columns of its model, and back from their points to a policy
 * document. A column is a signal with the points that the document gives its values, or a step of
 * what the rules of velocity with one flag bring: of several such rules only the heaviest counts,
 * so a step holds when any of them reaches its points, and the steps below hold with it.
 */
import { listDeclared } from '#shared/core/policies/declared-signals.ts'
import {
  type CategoryPolicy,
  listCategoryPolicies,
  type Policy,
  type SignalWeight,
  type VelocityRule,
} from '#shared/core/policies/policy.ts'
import { type CompiledPolicy, compileRules } from '#shared/core/scoring/score-rules.ts'
import { tallySignals } from '#shared/core/scoring/score-tally.ts'
import type { SignalCategory } from '#shared/core/signals/signal-definition.ts'
import { fullCatalog } from '#shared/core/signals/signals.ts'
import { detectedWhenFalse } from '#shared/core/signals/watched-signals.ts'
import { findVelocity } from '#shared/core/velocity/correlation.ts'
import type { OutcomeEvent } from './outcome-table.ts'

export type Feature = {
  /** Distinct in a policy, for a person to read: `root.rooted`, `HIGH_VELOCITY from 30`. */
  name: string
  /** The points that the policy gives now; of a step, what it adds to the one below. */
  today: number
  of:
    | { kind: 'signal'; path: string; points: number }
    | { kind: 'velocity'; flag: string; points: number }
}

export type FeatureSet = {
  features: readonly Feature[]
  /** The columns of an event. */
  columnsOf: (event: OutcomeEvent) => number[]
}

/**
 * The policy with weights for signals that it does not name: those of the catalog, and those that
 * it declares. One that it names with 0 stays context, which its author decided; so does what the
 * catalog calls informational.
 */
function withUnnamed(policy: Policy): { policy: Policy; added: ReadonlySet<string> } {
  const added = new Set<string>()
  const extend = <Weighed extends CategoryPolicy | undefined>(
    category: SignalCategory,
    own: Weighed,
  ): Weighed => {
    if (own === undefined) return own
    const signals: Record<string, SignalWeight> = { ...own.signals }
    for (const [name, { type, grade }] of Object.entries(fullCatalog[category])) {
      if (type !== 'boolean' || grade === 'informational' || Object.hasOwn(signals, name)) continue
      const path = `${category}.${name}`
      added.add(path)
      signals[name] = detectedWhenFalse.has(path) ? { whenFalse: 1 } : 1
    }
    for (const { path, name, ...declared } of listDeclared(policy)) {
      const isOwn = declared.category === category && declared.type === 'boolean'
      if (!isOwn || Object.hasOwn(signals, name)) continue
      added.add(path)
      signals[name] = 1
    }
    return { ...own, signals }
  }
  return { policy: mapCategories(policy, extend), added }
}

type MapCategory = <Weighed extends CategoryPolicy | undefined>(
  category: SignalCategory,
  own: Weighed,
) => Weighed

/** A policy with other weights by category. */
export function mapCategories(policy: Policy, map: MapCategory): Policy {
  const { categories, serverCategories } = policy
  const mapped = Object.fromEntries(
    Object.entries(categories).map(([name, own]) => [name, map(name as SignalCategory, own)]),
  ) as Policy['categories']
  if (serverCategories === undefined) return { ...policy, categories: mapped }
  const server = Object.fromEntries(
    Object.entries(serverCategories).map(([name, own]) => [name, map(name as SignalCategory, own)]),
  )
  return { ...policy, categories: mapped, serverCategories: server }
}

const toKey = (path: string, points: number): string => `${path} ${points}`

/** The columns that a policy has. */
export function toFeatures(policy: Policy): FeatureSet {
  const { policy: probe, added } = withUnnamed(policy)
  const features: Feature[] = []
  const places = new Map<string, number>()
  const add = (key: string, feature: Feature) => {
    places.set(key, features.length)
    features.push(feature)
  }
  for (const { category, signals } of listCategoryPolicies(probe)) {
    for (const [name, weight] of Object.entries(signals)) {
      const path = `${category}.${name}`
      const levels = listPoints(weight)
      for (const points of levels) {
        add(toKey(path, points), {
          name: levels.length === 1 ? path : `${path} (${points})`,
          today: added.has(path) ? 0 : points,
          of: { kind: 'signal', path, points },
        })
      }
    }
  }
  const steps = listSteps(policy.velocity)
  for (const [flag, levels] of steps) {
    levels.forEach((points, at) => {
      const today = points - (levels[at - 1] ?? 0)
      const of = { kind: 'velocity' as const, flag, points }
      add(toKey(flag, points), { name: `${flag} from ${points}`, today, of })
    })
  }
  const compiled = compileRules(probe)
  return { features, columnsOf: (event) => findColumns(event, { compiled, policy, places, steps }) }
}

function findColumns(
  event: OutcomeEvent,
  known: {
    compiled: CompiledPolicy
    policy: Policy
    places: ReadonlyMap<string, number>
    steps: ReadonlyMap<string, readonly number[]>
  },
): number[] {
  const { compiled, policy, places, steps } = known
  const columns: number[] = []
  for (const { hits } of tallySignals(compiled, event)?.tallies ?? []) {
    for (const { rule, points } of hits) columns.push(places.get(toKey(rule.path, points))!)
  }
  const heaviest = new Map<string, number>()
  for (const { code, weight } of findVelocity(policy.velocity, event.counts)) {
    heaviest.set(code, Math.max(weight, heaviest.get(code) ?? 0))
  }
  for (const [flag, weight] of heaviest) {
    for (const points of steps.get(flag)!) {
      if (points <= weight) columns.push(places.get(toKey(flag, points))!)
    }
  }
  return columns
}

/** The different points that a weight brings, without 0. */
function listPoints(weight: SignalWeight): number[] {
  const all =
    typeof weight === 'number'
      ? [weight]
      : 'whenFalse' in weight
        ? [weight.whenFalse]
        : 'atLeast' in weight
          ? [weight.weight]
          : Object.values(weight.values)
  return [...new Set(all)].filter((points) => points > 0).sort((a, b) => a - b)
}

/** By flag, the different points that its rules bring, rising. */
function listSteps(rules: readonly VelocityRule[]): Map<string, number[]> {
  const byFlag = new Map<string, Set<number>>()
  for (const rule of rules) {
    if (rule.weight === 0) continue
    const own = [rule.weight, ...(rule.steps ?? []).map(({ weight }) => weight)]
    const flag = flagOf(rule)
    byFlag.set(flag, new Set([...(byFlag.get(flag) ?? []), ...own.filter((one) => one > 0)]))
  }
  return new Map([...byFlag].map(([flag, points]) => [flag, [...points].sort((a, b) => a - b)]))
}

/** The flag of a rule is that of a finding just above its threshold. */
function flagOf(rule: VelocityRule): string {
  const counts = new Map([[`${rule.metric}:${rule.windowSeconds}`, rule.threshold + 1]])
  return findVelocity([{ ...rule, weight: 1 }], counts)[0]!.code
}

/**
 * The policy with other points.
 * @param pointsOf those of each feature, whole numbers; of a step what it adds to the one below
 */
export function withPoints(
  policy: Policy,
  features: readonly Feature[],
  pointsOf: readonly number[],
): Policy {
  const next = new Map<string, number>()
  const climbed = new Map<string, number>()
  features.forEach(({ of }, at) => {
    const points = Math.min(100, pointsOf[at]!)
    if (of.kind === 'signal') next.set(toKey(of.path, of.points), points)
    else {
      const total = Math.min(100, (climbed.get(of.flag) ?? 0) + points)
      climbed.set(of.flag, total)
      next.set(toKey(of.flag, of.points), total)
    }
  })
  const weighed = mapCategories(policy, (category, own) => {
    if (own === undefined) return own
    const signals = Object.entries(own.signals).map(([name, weight]) => {
      const change = (points: number) => next.get(toKey(`${category}.${name}`, points)) ?? points
      return [name, changeWeight(weight, change)] as const
    })
    const unnamed = features.flatMap(({ of, today }) => {
      if (of.kind !== 'signal' || today > 0 || !of.path.startsWith(`${category}.`)) return []
      const name = of.path.slice(category.length + 1)
      const points = next.get(toKey(of.path, of.points))!
      if (points === 0 || Object.hasOwn(own.signals, name)) return []
      return [[name, detectedWhenFalse.has(of.path) ? { whenFalse: points } : points] as const]
    })
    return { ...own, signals: Object.fromEntries([...signals, ...unnamed]) }
  })
  return {
    ...weighed,
    velocity: policy.velocity.map((rule) =>
      changeRule(rule, (points) => next.get(toKey(flagOf(rule), points)) ?? points),
    ),
  }
}

type Change = (points: number) => number

function changeWeight(weight: SignalWeight, change: Change): SignalWeight {
  if (typeof weight === 'number') return change(weight)
  if ('whenFalse' in weight) return { whenFalse: change(weight.whenFalse) }
  if ('atLeast' in weight) return { ...weight, weight: change(weight.weight) }
  const values = Object.entries(weight.values).map(([value, points]) => [value, change(points)])
  return { ...weight, values: Object.fromEntries(values) }
}

/** Steps that no longer add points go; a rule without any below a step begins there. */
function changeRule(rule: VelocityRule, change: Change): VelocityRule {
  if (rule.weight === 0) return rule
  const { steps: _, ...bare } = rule
  const ladder = [{ above: rule.threshold, weight: rule.weight }, ...(rule.steps ?? [])]
  const kept: { above: number; weight: number }[] = []
  for (const { above, weight } of ladder) {
    const points = change(weight)
    if (points > (kept.at(-1)?.weight ?? 0)) kept.push({ above, weight: points })
  }
  const [first, ...more] = kept
  if (first === undefined) return { ...bare, weight: 0 }
  const begun = { ...bare, threshold: first.above, weight: first.weight }
  return more.length === 0 ? begun : { ...begun, steps: more }
}

/** The signals that a floor of the policy needs: without points the floor would never hold. */
export const listFloorSignals = (policy: Policy): ReadonlySet<string> =>
  new Set(policy.floors.flatMap(({ signals }) => signals))
