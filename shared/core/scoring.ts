/**
 * The score: a pure function of `signals` and the tenant's policy, compiled once per policy. Same
 * signals, same policy, same answer on every machine; no clock, no I/O.
 *
 * Signals add up within their category to its cap; categories add up to 100; floors lift what is
 * proof by itself. Every point is accounted for: the weights of the reasons add up to the score.
 */
import { z } from 'zod'
import type { Flag } from './flags.ts'
import type { Policy, SignalWeight } from './policy.ts'
import { findSignal } from './signals.ts'
import { type Category, categories, type Signals } from './telemetry.ts'

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
export type Scorer = (signals: Signals) => Score

type Rule = { path: string; flag: Flag; critical: boolean; points: (value: unknown) => number }
type CompiledCategory = { category: Category; cap: number; rules: Map<string, Rule>; soft: boolean }
type Compiled = {
  policy: Policy
  categories: CompiledCategory[]
  floors: Map<string, number>
  confirming: Set<string>
}

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
 * @returns a function from the six categories' signals to score, action and reasons
 */
export function compilePolicy(policy: Policy): Scorer {
  const compiled = compile(policy)
  return (signals) => score(compiled, signals)
}

function compile(policy: Policy): Compiled {
  const floors = new Map<string, number>()
  for (const floor of policy.floors) {
    for (const path of floor.signals) {
      floors.set(path, Math.max(floor.score, floors.get(path) ?? 0))
    }
  }
  return {
    policy,
    floors,
    confirming: new Set(policy.halving?.confirmedBy ?? []),
    categories: categories.map((category) => ({
      category,
      cap: policy.categories[category].cap,
      soft: policy.softCategories.includes(category),
      rules: compileRules(category, policy.categories[category].signals),
    })),
  }
}

function compileRules(
  category: Category,
  weights: Record<string, SignalWeight>,
): Map<string, Rule> {
  const rules = new Map<string, Rule>()
  for (const [name, weight] of Object.entries(weights)) {
    const definition = findSignal(category, name)
    if (definition === undefined || weight === 0) continue
    rules.set(name, {
      path: `${category}.${name}`,
      flag: definition.flag,
      critical: definition.grade === 'critical',
      points: compileWeight(weight),
    })
  }
  return rules
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

type Hit = { rule: Rule; points: number }
type Tally = { category: CompiledCategory; hits: Hit[]; sum: number; points: number }

function tally(
  category: CompiledCategory,
  signals: Record<string, unknown>,
  policy: Policy,
): Tally {
  const hits: Hit[] = []
  let sum = 0
  let critical = 0
  for (const name in signals) {
    const rule = category.rules.get(name)
    if (rule === undefined) continue
    const points = rule.points(signals[name])
    if (points === 0) continue
    hits.push({ rule, points })
    sum += points
    if (rule.critical) critical++
  }
  // Order of keys must not matter, not even to how points are shared out.
  if (hits.length > 1)
    hits.sort((a, b) => b.points - a.points || (a.rule.path < b.rule.path ? -1 : 1))
  const strong = policy.strongEvidence !== null && critical >= policy.strongEvidence.signals
  return { category, hits, sum, points: strong ? category.cap : Math.min(category.cap, sum) }
}

function score(compiled: Compiled, signals: Signals): Score {
  const { policy } = compiled
  const tallies: Tally[] = []
  for (const category of compiled.categories) {
    const one = tally(category, signals[category.category], policy)
    if (one.hits.length > 0) tallies.push(one)
  }
  if (tallies.length === 0) return { score: 0, action: toAction(0, policy.thresholds), reasons: [] }
  const halved = applyHalving(compiled, tallies)
  limitSoft(tallies, policy.thresholds.block - 1)
  const total = Math.min(
    100,
    tallies.reduce((sum, one) => sum + one.points, 0),
  )
  const { floor, path } = findFloor(compiled, tallies)
  const final = Math.max(total, floor)
  const reasons = toReasons(tallies, total, halved)
  if (final > total) lift(reasons, tallies, path, final - total)
  reasons.sort((a, b) => b.weight - a.weight || (a.code < b.code ? -1 : 1))
  return { score: final, action: toAction(final, policy.thresholds), reasons }
}

/**
 * A confirmed emulator halves the halving category, unless that would score less than the same
 * signals without the confirmation: adding a detected signal never lowers a score.
 */
function applyHalving(compiled: Compiled, tallies: Tally[]): boolean {
  const halving = compiled.policy.halving
  if (halving === null) return false
  const target = tallies.find((one) => one.category.category === halving.category)
  if (target === undefined) return false
  let confirmed = false
  let unconfirmedPoints = 0
  let points = 0
  for (const one of tallies) {
    const proof = one.hits.filter((hit) => compiled.confirming.has(hit.rule.path))
    if (proof.length === 0) continue
    confirmed = true
    points += one.points
    const rest = one.sum - proof.reduce((sum, hit) => sum + hit.points, 0)
    unconfirmedPoints += Math.min(one.category.cap, rest)
  }
  if (!confirmed) return false
  const halvedPoints = Math.ceil(target.points / 2)
  const without = unconfirmedPoints + target.points
  target.points = Math.max(halvedPoints, Math.min(target.points, without - points))
  return true
}

function limitSoft(tallies: Tally[], limit: number): void {
  let room = limit
  for (const one of tallies) {
    if (!one.category.soft) continue
    one.points = Math.min(one.points, room)
    room -= one.points
  }
}

function findFloor(compiled: Compiled, tallies: Tally[]): { floor: number; path: string } {
  let floor = 0
  let path = ''
  for (const one of tallies) {
    const limit = one.category.soft ? compiled.policy.thresholds.block - 1 : 100
    for (const hit of one.hits) {
      const score = Math.min(limit, compiled.floors.get(hit.rule.path) ?? 0)
      if (score > floor) {
        floor = score
        path = hit.rule.path
      }
    }
  }
  return { floor, path }
}

/** Shares each category's points among its flags, largest remainder first, and caps the whole. */
function toReasons(tallies: Tally[], total: number, halved: boolean): Reason[] {
  const byFlag = new Map<Flag, { weight: number; signals: string[]; capped: boolean }>()
  let room = total
  // Where the sum of categories passes 100, the strongest categories keep their points.
  const ordered = [...tallies].sort((a, b) => b.points - a.points)
  for (const one of ordered) {
    const granted = Math.min(one.points, room)
    room -= granted
    const shares = shareOut(
      one.hits.map((hit) => hit.points),
      granted,
    )
    one.hits.forEach((hit, index) => {
      const entry = byFlag.get(hit.rule.flag) ?? { weight: 0, signals: [], capped: false }
      entry.weight += shares[index] ?? 0
      entry.signals.push(hit.rule.path)
      if ((shares[index] ?? 0) < hit.points) entry.capped = true
      byFlag.set(hit.rule.flag, entry)
    })
  }
  const reasons: Reason[] = []
  for (const [code, entry] of byFlag) {
    const evidence: Record<string, unknown> = { signals: entry.signals.sort() }
    if (entry.capped) evidence.capped = true
    if (halved && entry.capped) evidence.halved_by = 'emulator'
    reasons.push({ code, weight: entry.weight, evidence })
  }
  return reasons
}

/**
 * Splits `total` whole points in proportion to `parts`; what rounding leaves goes to the largest
 * remainders, ties to the earlier part.
 */
export function shareOut(parts: readonly number[], total: number): number[] {
  const sum = parts.reduce((a, b) => a + b, 0)
  if (sum === 0) return parts.map(() => 0)
  const exact = parts.map((part) => (part * total) / sum)
  const shares = exact.map(Math.floor)
  let left = total - shares.reduce((a, b) => a + b, 0)
  const byRemainder = exact
    .map((value, index) => ({ index, remainder: value - Math.floor(value) }))
    .sort((a, b) => b.remainder - a.remainder || a.index - b.index)
  for (const { index } of byRemainder) {
    if (left <= 0) break
    shares[index] = (shares[index] ?? 0) + 1
    left--
  }
  return shares
}

function lift(reasons: Reason[], tallies: Tally[], path: string, points: number): void {
  const hit = tallies.flatMap((one) => one.hits).find((one) => one.rule.path === path)
  const reason = reasons.find((one) => one.code === hit?.rule.flag)
  if (reason === undefined) return
  reason.weight += points
  reason.evidence.floor = path
}
