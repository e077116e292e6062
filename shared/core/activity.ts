/**
 * Counting what velocity rules count: how many distinct sessions or users were seen on a device in
 * the window (t - w, t] that ends with an event at t. Counts are as of the event's own time, so
 * neither the order in which events are processed nor their repetition changes them.
 */
import type { VelocityRule } from './policy.ts'

export type VelocityMetric = VelocityRule['metric']

/**
 * What was seen on a device: for each session (or user) the times at which it was, in ms, in any
 * order, repetitions allowed.
 */
export type Sightings = readonly (readonly number[])[]

/**
 * Prepares counting in one window. A sighting at s is within the window of every event in [s, s +
 * w): each session's sightings merge to stretches of time in which it counts, and the count at t is
 * how many stretches have begun by then, less those that have ended.
 * @returns a function from an event's time to how many were seen in the window that ends with it
 */
export function createWindowCount(
  sightings: Sightings,
  windowSeconds: number,
): (atMs: number) => number {
  const windowMs = windowSeconds * 1000
  const begins: number[] = []
  const ends: number[] = []
  for (const times of sightings) {
    const sorted = times.length > 1 ? [...times].sort(ascending) : times
    let end = Number.NEGATIVE_INFINITY
    for (const time of sorted) {
      if (time > end) {
        if (end !== Number.NEGATIVE_INFINITY) ends.push(end)
        begins.push(time)
      }
      end = time + windowMs
    }
    if (end !== Number.NEGATIVE_INFINITY) ends.push(end)
  }
  begins.sort(ascending)
  ends.sort(ascending)
  return (atMs) => countUpTo(begins, atMs) - countUpTo(ends, atMs)
}

const ascending = (a: number, b: number): number => a - b

/** How many of the sorted values are at most `limit`. */
function countUpTo(sorted: readonly number[], limit: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! <= limit) low = middle + 1
    else high = middle
  }
  return low
}

/** The least threshold of each metric and window among some policies, and the widest windows. */
export type Screen = {
  rules: { metric: VelocityMetric; windowSeconds: number; threshold: number }[]
  /** Widest window of each metric, 0 when no rule has the metric. */
  widestSeconds: Record<VelocityMetric, number>
}

/**
 * What to look for in the activity of many devices at once: a device that exceeds none of it
 * triggers no rule of any of the policies.
 */
export function toScreen(policies: Iterable<readonly VelocityRule[]>): Screen {
  const rules = new Map<string, Screen['rules'][number]>()
  const widestSeconds = { sessions_per_device: 0, users_per_device: 0 }
  for (const policy of policies) {
    for (const { metric, windowSeconds, threshold, weight } of policy) {
      if (weight === 0) continue
      const key = `${metric}:${windowSeconds}`
      const least = Math.min(threshold, rules.get(key)?.threshold ?? threshold)
      rules.set(key, { metric, windowSeconds, threshold: least })
      widestSeconds[metric] = Math.max(widestSeconds[metric], windowSeconds)
    }
  }
  return { rules: [...rules.values()], widestSeconds }
}
