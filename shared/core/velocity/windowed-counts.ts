/**
 * Counting what velocity rules count: how many distinct sessions, users, platforms or devices were
 * seen on something in the window (t - w, t] of an event at t, among the events that came before it
 * in the stream. Counts are as of the event's own place, so neither the order in which events are
 * processed nor their repetition changes them.
 */
import type { VelocityMetric, VelocityRule } from '#shared/core/policies/policy.ts'

/** When something was seen: its place in the stream, and the edge's clock in ms. */
export type Moment = { streamOffset: number; atMs: number }

/** When one session (or user, platform, device) was seen, in any order, repetitions allowed. */
export type Sightings = readonly Moment[]

/**
 * Counts for many events at once: for each, how many subjects were seen at its stream offset or
 * before it, less than the window before it.
 *
 * Goes through the stream once and keeps the latest time of every subject so far in a Fenwick tree,
 * so n sightings and m events cost (n + m) log n, whatever their times are.
 * @returns one count for each moment asked, in their order
 */
export function countInWindow(
  subjects: readonly Sightings[],
  windowSeconds: number,
  asked: readonly Moment[],
): number[] {
  const latest = subjects.map(() => Number.NEGATIVE_INFINITY)
  const coming = subjects.flatMap((sightings, subject) =>
    sightings.map(({ streamOffset, atMs }) => ({ streamOffset, atMs, subject })),
  )
  coming.sort((a, b) => a.streamOffset - b.streamOffset)
  const times = createTimeTree(coming.map((one) => one.atMs))
  const order = asked.map((_, index) => index)
  order.sort((a, b) => asked[a]!.streamOffset - asked[b]!.streamOffset)
  const counts = new Array<number>(asked.length).fill(0)
  let next = 0
  for (const index of order) {
    const { streamOffset, atMs } = asked[index]!
    for (; next < coming.length && coming[next]!.streamOffset <= streamOffset; next++) {
      const { subject, atMs: seenMs } = coming[next]!
      const before = latest[subject]!
      if (seenMs <= before) continue
      if (before !== Number.NEGATIVE_INFINITY) times.add(before, -1)
      times.add(seenMs, 1)
      latest[subject] = seenMs
    }
    counts[index] = times.countAbove(atMs - windowSeconds * 1000)
  }
  return counts
}

/** Counts of known times, of which those above a bound are asked. */
function createTimeTree(times: number[]) {
  const sorted = Float64Array.from(new Set(times)).sort()
  const sums = new Int32Array(sorted.length + 1)
  let total = 0
  /** How many of the sorted times are at most `limit`. */
  const rankOf = (limit: number): number => {
    let low = 0
    let high = sorted.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (sorted[middle]! <= limit) low = middle + 1
      else high = middle
    }
    return low
  }
  return {
    add: (time: number, by: number): void => {
      total += by
      for (let at = rankOf(time); at < sums.length; at += at & -at) sums[at]! += by
    },
    countAbove: (limit: number): number => {
      let atMost = 0
      for (let at = rankOf(limit); at > 0; at -= at & -at) atMost += sums[at]!
      return total - atMost
    },
  }
}

/** More than `threshold` within `windowSeconds`: what a rule is about, without its weight. */
export type Limit = Pick<VelocityRule, 'threshold' | 'windowSeconds'>

/** By metric, limits: whatever exceeds a rule of some policies exceeds one of them. */
export type Screen = ReadonlyMap<VelocityMetric, readonly Limit[]>

/** Limits of one metric; each is counted for every key, and a batch may be of many policies. */
const limitsMax = 4

/**
 * What to look for in the activity of many keys at once: what exceeds none of it triggers no rule
 * of any of the policies. A limit for each window as far as there are few: one for all of them
 * would be exceeded by every device that does in an hour what a rule allows in five minutes.
 */
export function toScreen(policies: Iterable<readonly VelocityRule[]>): Screen {
  const screen = new Map<VelocityMetric, readonly Limit[]>()
  for (const policy of policies) {
    for (const { metric, windowSeconds, threshold, weight } of policy) {
      if (weight === 0) continue
      screen.set(metric, withLimit(screen.get(metric) ?? [], { threshold, windowSeconds }))
    }
  }
  return new Map([...screen].map(([metric, limits]) => [metric, toFew(limits)]))
}

/** Whether whatever exceeds the other limit exceeds this one too. */
const covers = (limit: Limit, other: Limit): boolean =>
  limit.threshold <= other.threshold && limit.windowSeconds >= other.windowSeconds

function withLimit(limits: readonly Limit[], added: Limit): readonly Limit[] {
  if (limits.some((limit) => covers(limit, added))) return limits
  return [...limits.filter((limit) => !covers(added, limit)), added]
}

function toFew(limits: readonly Limit[]): readonly Limit[] {
  if (limits.length <= limitsMax) return limits
  const threshold = Math.min(...limits.map((limit) => limit.threshold))
  const windowSeconds = Math.max(...limits.map((limit) => limit.windowSeconds))
  return [{ threshold, windowSeconds }]
}
