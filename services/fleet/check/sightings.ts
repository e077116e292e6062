/**
 * How many sessions, users or devices an event's count must and can have covered. A count is over
 * what came before the event in the stream, and of two events the order is certain only when one
 * was answered before the other was sent: the answer follows the storing. So every count has two
 * bounds, which meet wherever nothing was under way together.
 */
import { type EventFact, isAccepted } from '../send/sent-events.ts'

/** What a count must be at least and can be at most; of flips, also which signals can have them. */
export type CountBounds = { low: number; high: number; signals?: readonly string[] }

/** Edges stamp events by clocks of their own, and windows are counted on their stamps. */
const clockMarginMs = 1_000

/**
 * When an event had its place in the stream at the latest: with its answer. Without one nobody
 * knows; an edge that got no acknowledgement may have its message stored at any time.
 */
export function placedByMs(fact: EventFact): number {
  return isAccepted(fact) ? fact.acceptedMs : Number.POSITIVE_INFINITY
}

export type Sightings = {
  /** Notes that a subject was seen with an event. All must be noted before the first count. */
  note: (subject: string | number, fact: EventFact) => void
  /**
   * Counts the subjects of the events before this one that are in its window, itself included.
   * @param own the subjects that the event itself brings
   */
  count: (fact: EventFact, own: readonly (string | number)[], windowMs: number) => CountBounds
}

type Sighting = { sentMs: number; placedMs: number; lastMs: number }

/** Ready to note sightings of subjects on one device, or on one user. */
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
    count: (fact, own, windowMs) => {
      sorted ??= sort()
      const receivedByMs = fact.acceptedMs ?? fact.endedMs
      const certainlySince = receivedByMs - windowMs + clockMarginMs
      const before = countBelow(sorted.placedMs, fact.sentMs)
      const certain = Math.max(0, before - countBelow(sorted.sentMs, certainlySince))
      // The event itself is always counted.
      const added = own.filter((one) => bySubject.get(one)!.placedMs >= fact.sentMs).length
      const possiblySince = fact.sentMs - windowMs - clockMarginMs
      return {
        low: Math.max(own.length, certain + added),
        high:
          countBelow(sorted.sentMs, placedByMs(fact)) - countBelow(sorted.lastMs, possiblySince),
      }
    },
  }
}

/** How many of the ascending values are below `limit`. */
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
