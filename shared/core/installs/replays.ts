/**
 * Replays: an event whose bytes come again long after their first copy, or from another network.
 * The copy itself is no new event and changes nothing; the device's next event tells of it. Both
 * are a function of the order of the stream, of the times of receipt and of the networks.
 */
import { orderWindowMs, retryMaxMs } from '#shared/core/base/limits/history.ts'
import { countUpTo, type Moment } from '#shared/core/velocity/windowed-counts.ts'

/** A copy of an event on its device, and its network; 0 where none was measured. */
export type EventCopy = Moment & { event: number; network: number }

/** The first copy of an event that came again. */
export type FirstCopy = {
  /** When it was received, in ms since 1970. */
  firstAtMs: number
  /** Whether the later copy is from another network; false where one of the two is not known. */
  networkChanged: boolean
}

/** A later copy, when it was received in ms since 1970, and the first one. */
export type Replay = FirstCopy & { atMs: number }

/** Whether a copy came later than a client's own retries, which come within minutes. */
export const isLate = ({ firstAtMs, atMs }: Replay): boolean => atMs - firstAtMs > retryMaxMs

/** Whether a later copy is a replay. */
export const isReplay = (copy: Replay): boolean => isLate(copy) || copy.networkChanged

const isOtherNetwork = (one: EventCopy, other: EventCopy): boolean =>
  one.network !== other.network && one.network !== 0 && other.network !== 0

/**
 * @param copies of one event, in any order, repetitions allowed
 * @param streamOffset of the copy to judge
 * @returns the first copy; null where the copy to judge is that
 */
export function findFirstCopy(
  copies: readonly EventCopy[],
  streamOffset: number,
): FirstCopy | null {
  let first: EventCopy | undefined
  for (const copy of copies) {
    if (first === undefined || copy.streamOffset < first.streamOffset) first = copy
  }
  if (first === undefined || first.streamOffset >= streamOffset) return null
  const own = copies.find((copy) => copy.streamOffset === streamOffset)
  const networkChanged = own !== undefined && isOtherNetwork(own, first)
  return { firstAtMs: first.atMs, networkChanged }
}

/**
 * The replay that an event tells of: the last one of its device, if no other event came between.
 * @param rows copies of events of a device in any order, repetitions allowed
 * @param events the events to judge, each at its first copy
 * @returns one for each event, in their order; null for none
 */
export function findReplays(
  rows: readonly EventCopy[],
  events: readonly (Moment & { event: number })[],
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
      const networkChanged = isOtherNetwork(copy, first)
      const replay = { firstAtMs: first.atMs, atMs: copy.atMs, networkChanged }
      if (isReplay(replay)) return replay
    }
    return null
  })
}
