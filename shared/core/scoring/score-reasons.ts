/**
 * From a tally to reasons: each flag with the points of its signals and their evidence. The weights
 * add up to the score exactly, whatever was capped, halved or raised to a floor. A flag that lost
 * all its points stays with a weight of 0, because its signals were still detected.
 */
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import { toMissingReason } from './required-signals.ts'
import type { Reason } from './score.ts'
import { type CompiledPolicy, toSoftLimit } from './score-rules.ts'
import type { Floor, Tallied, Tally } from './score-tally.ts'

/**
 * The evidence of a reason, and what changed its points. `signals` is always present, as sorted
 * paths; the rest only where it changed points:
 * - `caps`: the caps that applied, each with the sum that it limited. A `category` with a `group`
 *   is the cap of those signals; without, the cap of the category; `all` is the limit of 100.
 * - `strong_evidence`: the critical signals that filled the category to its cap.
 * - `halved_by`: the signals that confirm the halving of the category.
 * - `soft_limit`: the most points of all soft categories, which cannot lead to BLOCK.
 * - `floor`: the signal with a floor, and the score that it raised the event to; `with` has the
 *   signals that had to be detected beside it.
 */
export type Evidence = {
  signals: string[]
  caps?: EvidenceCap[]
  strong_evidence?: string[]
  halved_by?: string[]
  soft_limit?: number
  floor?: Floor
}

type EvidenceCap = { category: string; group?: string[]; cap: number; sum: number }

type PendingReason = { code: Flag; weight: number; evidence: Evidence }

/** @returns the reasons, heaviest first; their weights add up to the score */
export function toReasons(compiled: CompiledPolicy, tallied: Tallied): Reason[] {
  const pending = new Map<Flag, PendingReason>()
  const whole = { category: 'all', cap: 100, sum: tallied.sum }
  let remaining = Math.min(100, tallied.sum)
  // Where the sum of categories exceeds 100, the strongest categories keep their points.
  const ordered = [...tallied.tallies].sort((a, b) => b.points - a.points)
  for (const tally of ordered) {
    const granted = Math.min(tally.points, remaining)
    remaining -= granted
    addTally(pending, compiled, tally, { granted, whole: granted < tally.points ? whole : null })
  }
  if (tallied.floor !== null) addFloor(pending, tallied, tallied.score - tallied.total)
  for (const { evidence } of pending.values()) evidence.signals.sort()
  const reasons: Reason[] = [...pending.values()]
  const { missing } = tallied
  if (missing !== null) reasons.push(toMissingReason(missing.signals, missing.points))
  return reasons.sort((a, b) => b.weight - a.weight || (a.code < b.code ? -1 : 1))
}

function addTally(
  pending: Map<Flag, PendingReason>,
  compiled: CompiledPolicy,
  tally: Tally,
  limit: { granted: number; whole: EvidenceCap | null },
): void {
  const { hits } = tally
  const groups = tally.grouped < tally.sum ? findActedGroups(tally) : noGroups
  // Strong evidence fills even a category whose groups left it no points.
  const limited = tally.grouped === 0 ? noGroups : groups
  const shares = shareOut(limitGroups(tally, limited), limit.granted)
  const touched = new Set<Evidence>()
  for (let index = 0; index < hits.length; index++) {
    const { rule, flag } = hits[index]!
    let reason = pending.get(flag)
    if (reason === undefined) {
      reason = { code: flag, weight: 0, evidence: { signals: [] } }
      pending.set(flag, reason)
    }
    reason.weight += shares[index]!
    reason.evidence.signals.push(rule.path)
    touched.add(reason.evidence)
    const group = groups.find((one) => one.group === rule.group)
    if (group !== undefined) addCap(reason.evidence, group.cap)
  }
  for (const evidence of touched) addLimits(evidence, compiled, tally, limit.whole)
}

/** A group whose cap reduced its points, with the evidence of it. */
type ActedGroup = { group: number; cap: EvidenceCap }

const noGroups: readonly ActedGroup[] = []

function findActedGroups({ category, hits, groupSums }: Tally): ActedGroup[] {
  return groupSums.flatMap((sum, group) => {
    const cap = category.groupCaps[group]!
    if (sum <= cap) return []
    const paths = hits.filter((hit) => hit.rule.group === group).map((hit) => hit.rule.path)
    return [{ group, cap: { category: category.category, group: paths.sort(), cap, sum } }]
  })
}

/** The points of each hit after the caps of groups. */
function limitGroups({ hits }: Tally, groups: readonly ActedGroup[]): number[] {
  const points = hits.map((hit) => hit.points)
  for (const { group, cap } of groups) {
    const members = hits.flatMap((hit, index) => (hit.rule.group === group ? index : []))
    const shares = shareOut(
      members.map((index) => points[index]!),
      cap.cap,
    )
    members.forEach((index, at) => {
      points[index] = shares[at]!
    })
  }
  return points
}

function addCap(evidence: Evidence, cap: EvidenceCap): void {
  if (evidence.caps === undefined) evidence.caps = [cap]
  else if (!evidence.caps.includes(cap)) evidence.caps.push(cap)
}

function addLimits(
  evidence: Evidence,
  compiled: CompiledPolicy,
  tally: Tally,
  whole: EvidenceCap | null,
): void {
  const { category, hits, grouped, capped, halved, halvedBy, points } = tally
  if (grouped > capped) {
    addCap(evidence, { category: category.category, cap: category.cap, sum: grouped })
  }
  if (capped > grouped) {
    const critical = hits.filter((hit) => hit.rule.critical).map((hit) => hit.rule.path)
    evidence.strong_evidence = union(evidence.strong_evidence, critical)
  }
  if (halved < capped) evidence.halved_by = union(evidence.halved_by, halvedBy)
  if (points < halved) evidence.soft_limit = toSoftLimit(compiled.thresholds)
  if (whole !== null) addCap(evidence, whole)
}

/** Evidence of a flag in two categories names the signals of both. */
function union(present: readonly string[] = [], more: readonly string[]): string[] {
  return [...new Set([...present, ...more])].sort()
}

function addFloor(
  pending: Map<Flag, PendingReason>,
  { tallies, floor }: Tallied,
  points: number,
): void {
  for (const { hits } of tallies) {
    for (const { rule, flag } of hits) {
      const reason = rule.path === floor?.signal ? pending.get(flag) : undefined
      if (reason === undefined || floor === null) continue
      reason.weight += points
      reason.evidence.floor = floor
    }
  }
}

/**
 * Splits `total` whole points in proportion to `parts` by the largest remainder method; of equal
 * remainders the earlier part comes first.
 */
export function shareOut(parts: readonly number[], total: number): number[] {
  let sum = 0
  for (const part of parts) sum += part
  if (sum === 0 || total === 0) return new Array<number>(parts.length).fill(0)
  if (sum === total) return [...parts]
  const shares: number[] = []
  let left = total
  for (const part of parts) {
    const share = Math.floor((part * total) / sum)
    shares.push(share)
    left -= share
  }
  // Less than one point per part is left, so each part gets one at most.
  const remainders = parts.map((part, index) => (part * total) / sum - shares[index]!)
  for (; left > 0; left--) {
    let largest = 0
    for (let index = 1; index < remainders.length; index++) {
      if (remainders[index]! > remainders[largest]!) largest = index
    }
    shares[largest]!++
    remainders[largest] = -1
  }
  return shares
}
