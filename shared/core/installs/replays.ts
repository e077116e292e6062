/**
 * Replays: an event whose bytes come again long after their first copy. The copy itself is no new
 * event and changes nothing; the device's next event tells of it. Both are a function of the order
 * of the stream and of the times of receipt.
 */
import { orderWindowMs, retryMaxMs } from '#shared/core/base/limits/history.ts'
import { countUpTo, type Moment } from '#shared/core/velocity/windowed-counts.ts'

/** A copy of an event on its device. */
export type EventCopy = Moment & { event: number }

/** A replay before an event: when the first copy came, and when this one, in ms since 1970. */
export type Replay = { firstAtMs: number; atMs: number }

/** Whether a later copy is a replay: a client's own retries come within minutes. */
export const isReplay = ({ firstAtMs, atMs }: Replay): boolean => atMs - firstAtMs > retryMaxMs

/**
 * The replay that an event tells of: the last one of its device, if no other event came between.
 * @param rows copies of events of a device in any order, repetitions allowed
 * @param events the events to judge, each at its first copy
 * @returns one for each event, in their order; null for none
 */
export function findReplays(
  rows: readonly EventCopy[],
  events: readonly EventCopy[],
): (Replay | null)[] {
  const sorted = [...rows].sort((a, b) => a.streamOffset - b.streamOffset)
  const copies = new Map<number, EventCopy[]>()
  for (const row of sorted) {
    const own = copies.get(row.event)
    if (own === undefined) copies.set(row.event, [row])
    else own.push(row)
  }
  return events.map(({ streamOffset, atMs }) => {
    const afterMs = atMs - orderWindowMs
    for (let at = countUpTo(sorted, streamOffset - 1) - 1; at >= 0; at--) {
      const copy = sorted[at]!
      if (copy.atMs <= afterMs) continue
      const first = copies.get(copy.event)!.find((one) => one.atMs > afterMs)!
      if (first.streamOffset === copy.streamOffset) return null
      const replay = { firstAtMs: first.atMs, atMs: copy.atMs }
      if (isReplay(replay)) return replay
    }
    return null
  })
}
