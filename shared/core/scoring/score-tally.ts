/**
 * From signals to points. Signals add up within their groups and their category, a category can be
 * halved or limited, categories add up to at most 100, and floors raise the score. The tally keeps
 * every step for reasons and explanations. One more detected signal never lowers a score, unless it
 * is one that the policy requires, whose absence has points of its own.
 */

import type { Flag } from '#shared/core/signals/flag-codes.ts'
import {
  type CategorySignals,
  isServerCategory,
  type ServerSignals,
  type Signals,
} from '#shared/core/signals/signal-definition.ts'
import { findMissing } from './required-signals.ts'
import {
  type CategoryRules,
  type CompiledPolicy,
  type HalvingRule,
  type Rule,
  toSoftLimit,
} from './score-rules.ts'
import type { ScoringContext } from './suppressions.ts'
import { findTrustedInstaller } from './trusted-installers.ts'
import { isVerifiedHere } from './verified-verdicts.ts'

/** A signal that scores, its points before any limit, and the flag of its value. */
type Hit = { rule: Rule; points: number; flag: Flag }

export type Tally = {
  category: CategoryRules
  /** Heaviest first, then by path, so that the order of keys in an event has no effect. */
  hits: Hit[]
  /** The points of the signals. */
  sum: number
  /** The sum of each group's signals, before the group's cap. */
  groupSums: readonly number[]
  /** The sum after the caps of groups. */
  grouped: number
  /** The points after the category's cap, or at the cap by strong evidence. */
  capped: number
  /** The detected signals that confirm its halving; empty when there is none. */
  halvedBy: string[]
  halved: number
  /** After the limit of soft categories: the category's part of the score. */
  points: number
}

export type Tallied = {
  /** Only categories with a hit. */
  tallies: Tally[]
  /** The sum of the categories, before the limit of 100. */
  sum: number
  /** Required signals that were not measured, and the points of their absence. */
  missing: { signals: string[]; points: number } | null
  /** The sum and the points of missing signals, at most 100. */
  total: number
  /** Null when no floor is above the total. */
  floor: Floor | null
  score: number
}

/** The signal that lifts the score, with the others that it needs, if it needs any. */
export type Floor = { signal: string; with?: string[]; score: number }

/** What is known of an event: the client's signals, the service's, and who sent it when. */
export type Observed = { signals: Signals; server: ServerSignals; context: ScoringContext }

/**
 * Tallies an event.
 * @returns null when no signal scores, which is the usual case
 */
export function tallySignals(compiled: CompiledPolicy, observed: Observed): Tallied | null {
  let tallies: Tally[] | null = null
  const { signals, server } = observed
  const trusted = findTrustedInstaller(compiled.trust, signals) !== null
  for (const category of compiled.categories) {
    const { category: name } = category
    const own = isServerCategory(name) ? server[name] : signals[name]
    const hits = own === undefined ? null : findHits(category, own, { ...observed, trusted })
    if (hits === null) continue
    tallies ??= []
    tallies.push(addUp(category, hits, compiled.strongFrom))
  }
  const { requirement } = compiled
  const absent = requirement === null ? [] : findMissing(requirement, signals)
  if (tallies === null && absent.length === 0) return null
  tallies ??= []
  if (compiled.halving.length > 0) applyHalving(compiled, tallies)
  limitSoft(compiled, tallies)
  let sum = 0
  for (const one of tallies) sum += one.points
  const limited = Math.min(100, sum)
  const points = absent.length === 0 ? 0 : Math.min(requirement!.weight, 100 - limited)
  const missing = absent.length === 0 ? null : { signals: absent, points }
  const total = limited + points
  const floor = findFloor(compiled, tallies, total)
  return { tallies, sum, missing, total, floor, score: floor?.score ?? total }
}

function findHits(
  category: CategoryRules,
  signals: CategorySignals,
  { context, server, trusted }: Observed & { trusted: boolean },
): Hit[] | null {
  const { rules, falseRules } = category
  let hits: Hit[] | null = null
  for (const name in signals) {
    const value = signals[name]
    // Most values are false and need no look-up.
    if (value === null || (value === false && falseRules === null)) continue
    const rule = value === false ? falseRules?.get(name) : rules.get(name)
    if (rule === undefined) continue
    const points = rule.points(value)
    if (points === 0 || (trusted && rule.silenced)) continue
    if (rule.wordOf !== null && isVerifiedHere(rule.wordOf, server)) continue
    if (findSuppression(rule, context) !== null) continue
    hits ??= []
    hits.push({ rule, points, flag: rule.flagOf(value) })
  }
  if (hits !== null && hits.length > 1) hits.sort(byPointsThenPath)
  return hits
}

/**
 * The reason of the first suppression that acts on a signal.
 * @returns null when the signal scores
 */
export function findSuppression(rule: Rule, context: ScoringContext): string | null {
  if (rule.suppressions === null) return null
  return rule.suppressions.find((one) => one.acts(context))?.reason ?? null
}

function byPointsThenPath(a: Hit, b: Hit): number {
  return b.points - a.points || (a.rule.path < b.rule.path ? -1 : 1)
}

const noGroups: readonly number[] = []
const noSignals: string[] = []

function addUp(category: CategoryRules, hits: Hit[], strongFrom: number): Tally {
  const { groupCaps } = category
  const groupSums = groupCaps.length === 0 ? noGroups : groupCaps.map(() => 0)
  let sum = 0
  let critical = 0
  for (const { rule, points } of hits) {
    sum += points
    if (rule.critical) critical++
    if (rule.group >= 0) (groupSums as number[])[rule.group]! += points
  }
  let grouped = sum
  for (let group = 0; group < groupSums.length; group++) {
    grouped -= Math.max(0, groupSums[group]! - groupCaps[group]!)
  }
  // Independent critical signals fill a category, whatever they weigh.
  const capped = critical >= strongFrom ? category.cap : Math.min(category.cap, grouped)
  const halvedBy = noSignals
  return {
    category,
    hits,
    sum,
    groupSums,
    grouped,
    capped,
    halvedBy,
    halved: capped,
    points: capped,
  }
}

type Halving = { rule: HalvingRule; target: Tally }

/**
 * Halves confirmed categories. A confirming signal must not lower a score by being detected. So the
 * score is the maximum over all choices of halvings, where a halving that is not chosen loses its
 * confirming signals and their points. What the maximum is above the halves is added to the halved
 * categories again. As a maximum over subsets of the detected signals it cannot fall when one more
 * is detected.
 */
function applyHalving(compiled: CompiledPolicy, tallies: Tally[]): void {
  const halvings: Halving[] = []
  for (const rule of compiled.halving) {
    const target = tallies.find((one) => one.category.category === rule.category)
    if (target === undefined) continue
    const proofs = tallies.flatMap((one) =>
      one.hits.filter((hit) => rule.confirming.has(hit.rule.path)).map((hit) => hit.rule.path),
    )
    if (proofs.length === 0) continue
    target.halvedBy = proofs.sort()
    target.halved = Math.ceil(target.capped / 2)
    halvings.push({ rule, target })
  }
  if (halvings.length === 0) return
  const highest = findHighest(compiled, tallies, halvings)
  for (const { target } of halvings) {
    const missing = highest - combine(compiled, tallies)
    if (missing > 0) target.halved = Math.min(target.capped, target.halved + missing)
  }
}

/** The highest score of any choice of halvings, without the signals that confirm the others. */
function findHighest(
  compiled: CompiledPolicy,
  tallies: readonly Tally[],
  halvings: readonly Halving[],
): number {
  // The choice of all halvings is the present tally.
  let highest = combine(compiled, tallies)
  // There are at most 6 rules, one per category, so at most 64 choices; usually two.
  for (let chosen = 0; highest < 100 && chosen < (1 << halvings.length) - 1; chosen++) {
    const isChosen = (index: number) => (chosen & (1 << index)) !== 0
    const stays = ({ rule: { path } }: Hit) =>
      halvings.every(({ rule }, index) => isChosen(index) || !rule.confirming.has(path))
    const choice = tallies.map((one) => {
      const { category } = one
      const capped = one.hits.every(stays)
        ? one.capped
        : addUp(category, one.hits.filter(stays), compiled.strongFrom).capped
      const halves = halvings.some(({ target }, index) => target === one && isChosen(index))
      return { category, halved: halves ? Math.ceil(capped / 2) : capped }
    })
    highest = Math.max(highest, combine(compiled, choice))
  }
  return highest
}

function combine(
  compiled: CompiledPolicy,
  tallies: readonly Pick<Tally, 'category' | 'halved'>[],
): number {
  let hard = 0
  let soft = 0
  for (const { category, halved } of tallies) {
    if (category.soft) soft += halved
    else hard += halved
  }
  return Math.min(100, hard + Math.min(toSoftLimit(compiled.thresholds), soft))
}

function limitSoft(compiled: CompiledPolicy, tallies: Tally[]): void {
  let remaining = toSoftLimit(compiled.thresholds)
  for (const one of tallies) {
    one.points = one.halved
    if (!one.category.soft) continue
    one.points = Math.min(one.halved, remaining)
    remaining -= one.points
  }
}

function findFloor(
  compiled: CompiledPolicy,
  tallies: readonly Tally[],
  total: number,
): Floor | null {
  let score = total
  let floor: Floor | null = null
  for (const { hits } of tallies) {
    for (const { rule, points } of hits) {
      const ofValue = compiled.valueFloors.get(rule.path)?.get(points) ?? 0
      const lifted = Math.max(ofValue, compiled.floors.get(rule.path) ?? 0)
      if (lifted <= score) continue
      score = lifted
      floor = { signal: rule.path, score }
    }
  }
  for (const { score: lifted, signals } of compiled.jointFloors) {
    if (lifted <= score || !signals.every((path) => isHit(tallies, path))) continue
    score = lifted
    floor = { signal: signals[0]!, with: signals.slice(1), score }
  }
  return floor
}

function isHit(tallies: readonly Tally[], path: string): boolean {
  return tallies.some(({ hits }) => hits.some(({ rule }) => rule.path === path))
}
