/**
 * Distinct counts in time windows: how many sessions, users, platforms or devices were seen in the
 * window (t - w, t] of an event at t, among the events up to it in the stream. A count is as of the
 * event's stream offset, so neither processing order nor repetition changes it.
 */

/** Where and when an event was seen: its stream offset, and the edge's clock in ms since 1970. */
export type Moment = { streamOffset: number; atMs: number }

/**
 * Counts for many events at once: for each, how many subjects were seen at its stream offset or
 * before, and less than the window before its time.
 *
 * One pass in stream order keeps the latest time of every subject in a Fenwick tree, so n moments
 * and m events cost (n + m) log n, whatever their times are.
 * @param subjects for each subject (a session, user, platform or device) when it was seen, in any
 * order, repetitions allowed
 * @param events the events to count for
 * @returns one count for each event, in their order
 */
export function countInWindow(
  subjects: readonly (readonly Moment[])[],
  windowSeconds: number,
  events: readonly Moment[],
): number[] {
  const latest = subjects.map(() => Number.NEGATIVE_INFINITY)
  const coming = subjects.flatMap((moments, subject) =>
    moments.map(({ streamOffset, atMs }) => ({ streamOffset, atMs, subject })),
  )
  coming.sort((a, b) => a.streamOffset - b.streamOffset)
  const times = createTimeTree(coming.map((one) => one.atMs))
  const order = events.map((_, index) => index)
  order.sort((a, b) => events[a]!.streamOffset - events[b]!.streamOffset)
  const counts = new Array<number>(events.length).fill(0)
  let next = 0
  for (const index of order) {
    const { streamOffset, atMs } = events[index]!
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

/** A Fenwick tree over these times: counts those that are present and later than a limit. */
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

/** How many of some moments, sorted by stream offset, are at most at this offset. */
export function countUpTo(sorted: readonly Moment[], streamOffset: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]!.streamOffset <= streamOffset) low = middle + 1
    else high = middle
  }
  return low
}
