/**
 * The lowest and the highest possible velocity counts of an event. A count covers the earlier
 * events in the stream. The order of two events is certain only when one was answered before the
 * other was sent, because the response follows the storing. Without concurrent requests both bounds
 * are equal.
 */
import { type EventFact, isAccepted } from '../send/sent-events.ts'

/** The bounds of a count; for flips also the possible signals. */
export type CountBounds = { low: number; high: number; signals?: readonly string[] }

/** Windows use the clocks of the edges, which may differ. */
const clockMarginMs = 1_000

/**
 * The latest time at which an event was in the stream: its response. Without a response there is no
 * limit, because an edge without an acknowledgement may have its message stored at any time.
 */
export function placedByMs(fact: EventFact): number {
  return isAccepted(fact) ? fact.acceptedMs : Number.POSITIVE_INFINITY
}

export type Sightings = {
  /** Records a subject of an event. Record all before the first count. */
  note: (subject: string | number, fact: EventFact) => void
  /**
   * Counts the subjects of the events before this one that are in its window, itself included.
   * @param own the subjects of the event itself
   */
  count: (fact: EventFact, values: readonly (string | number)[], windowMs: number) => CountBounds
  /** Whether another subject was seen before the first sighting of this one. */
  isLaterThanAnother: (subject: string | number) => { certainly: boolean; possibly: boolean }
}

type Sighting = { sentMs: number; placedMs: number; lastMs: number }

/** Creates the sightings of one device or user. */
export function createSightings(): Sightings {
  const bySubject = new Map<string | number, Sighting>()
  let sorted: Record<keyof Sighting, Float64Array> | null = null
  const sort = () => {
    const pick = (key: keyof Sighting) =>
      Float64Array.from(bySubject.values(), (one) => one[key]).sort()
    return { sentMs: pick('sentMs'), placedMs: pick('placedMs'), lastMs: pick('lastMs') }
  }
  return {
    note: (subject, fact) => {
      const known = bySubject.get(subject)
      const lastMs = isAccepted(fact) ? fact.endedMs : Number.POSITIVE_INFINITY
      bySubject.set(subject, {
        sentMs: Math.min(known?.sentMs ?? fact.sentMs, fact.sentMs),
        placedMs: Math.min(known?.placedMs ?? placedByMs(fact), placedByMs(fact)),
        lastMs: Math.max(known?.lastMs ?? lastMs, lastMs),
      })
    },
    isLaterThanAnother: (subject) => {
      const { sentMs, placedMs } = bySubject.get(subject)!
      const others = [...bySubject].filter(([other]) => other !== subject)
      return {
        certainly: others.some(([, other]) => other.placedMs + clockMarginMs < sentMs),
        possibly: others.some(([, other]) => other.sentMs < placedMs + clockMarginMs),
      }
    },
    count: (fact, values, windowMs) => {
      sorted ??= sort()
      const receivedByMs = fact.acceptedMs ?? fact.endedMs
      const certainlySince = receivedByMs - windowMs + clockMarginMs
      const before = countBelow(sorted.placedMs, fact.sentMs)
      const certain = Math.max(0, before - countBelow(sorted.sentMs, certainlySince))
      // The event itself is always counted.
      const added = values.filter((one) => bySubject.get(one)!.placedMs >= fact.sentMs).length
      const possiblySince = fact.sentMs - windowMs - clockMarginMs
      return {
        low: Math.max(values.length, certain + added),
        high:
          countBelow(sorted.sentMs, placedByMs(fact)) - countBelow(sorted.lastMs, possiblySince),
      }
    },
  }
}

/** The number of ascending values below `limit`. */
export function countBelow(values: Float64Array, limit: number): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! < limit) low = middle + 1
    else high = middle
  }
  return low
}
