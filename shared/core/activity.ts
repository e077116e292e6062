/**
 * Counting what velocity rules count: how many distinct sessions, users, platforms or devices were
 * seen on something in the window (t - w, t] of an event at t, among the events that came before it
 * in the stream. Counts are as of the event's own place, so neither the order in which events are
 * processed nor their repetition changes them.
 */
import type { VelocityMetric, VelocityRule } from './policy.ts'

/** When something was seen: its place in the stream, and the edge's clock in ms. */
export type Moment = { position: number; atMs: number }

/** When one session (or user, platform, device) was seen, in any order, repetitions allowed. */
export type Sightings = readonly Moment[]

/**
 * Counts for many events at once: for each, how many subjects were seen at its position or before
 * it, less than the window before it.
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
    sightings.map(({ position, atMs }) => ({ position, atMs, subject })),
  )
  coming.sort((a, b) => a.position - b.position)
  const times = createTimeTree(coming.map((one) => one.atMs))
  const order = asked.map((_, index) => index)
  order.sort((a, b) => asked[a]!.position - asked[b]!.position)
  const counts = new Array<number>(asked.length).fill(0)
  let next = 0
  for (const index of order) {
    const { position, atMs } = asked[index]!
    for (; next < coming.length && coming[next]!.position <= position; next++) {
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

/** By metric, the least threshold and the widest window that any of some policies has. */
export type Screen = ReadonlyMap<VelocityMetric, { threshold: number; windowSeconds: number }>

/**
 * What to look for in the activity of many keys at once: what exceeds none of it triggers no rule
 * of any of the policies.
 */
export function toScreen(policies: Iterable<readonly VelocityRule[]>): Screen {
  const screen = new Map<VelocityMetric, { threshold: number; windowSeconds: number }>()
  for (const policy of policies) {
    for (const { metric, windowSeconds, threshold, weight } of policy) {
      if (weight === 0) continue
      const present = screen.get(metric)
      screen.set(metric, {
        threshold: Math.min(threshold, present?.threshold ?? threshold),
        windowSeconds: Math.max(windowSeconds, present?.windowSeconds ?? 0),
      })
    }
  }
  return screen
}
