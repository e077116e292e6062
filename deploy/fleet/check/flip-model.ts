/**
 * The model of signal flips of a device: the lowest and the highest possible count when an event
 * was decided. The count is exact while the order of the device's events is certain or all report
 * the same; from the first other event on it has bounds. It shares no code with the service, so
 * that it checks the service's counting.
 */
import { watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { type EventFact, isAccepted } from '../send/sent-events.ts'
import { type CountBounds, countBelow, placedByMs } from './sightings.ts'

const none: CountBounds = { low: 0, high: 0 }

/** The flips of a device as of each of its events, in a window. */
export function createFlips(
  facts: readonly EventFact[],
): (fact: EventFact, windowMs: number) => CountBounds {
  const bits = findContested(facts)
  // A signal that was never both detected and clean cannot have flipped.
  if (bits.length === 0) return () => none
  const sorted = [...facts].sort((a, b) => a.sentMs - b.sentMs)
  const sentMs = Float64Array.from(sorted, (fact) => fact.sentMs)
  const firstMs = sorted[0]!.sentMs
  const exact = countExactly(sorted, bits)
  const signals = bits.map((bit) => watchedSignals[bit]!)
  return (fact, windowMs) => {
    const known = exact.get(fact.event)
    // A window that begins within the device's life leaves some events out.
    if (known !== undefined && fact.endedMs - firstMs < windowMs / 2) return known
    return { low: 0, high: Math.max(0, countBelow(sentMs, placedByMs(fact)) - 1), signals }
  }
}

type State = 'detected' | 'clean' | null

function stateOf({ signalBits }: EventFact, bit: number): State {
  const half = bit < 32 ? 0 : 1
  const mask = 1 << (bit & 31)
  if ((signalBits.detected[half] & mask) !== 0) return 'detected'
  return (signalBits.clean[half] & mask) !== 0 ? 'clean' : null
}

function findContested(facts: readonly EventFact[]): number[] {
  const detected = [0, 0]
  const clean = [0, 0]
  for (const { signalBits } of facts) {
    for (const half of [0, 1] as const) {
      detected[half]! |= signalBits.detected[half]
      clean[half]! |= signalBits.clean[half]
    }
  }
  const both = [detected[0]! & clean[0]!, detected[1]! & clean[1]!]
  const all = watchedSignals.map((_, bit) => bit)
  return all.filter((bit) => (both[bit >> 5]! & (1 << (bit & 31))) !== 0)
}

/** Exact counts by event, until the first uncertain one. */
function countExactly(
  sorted: readonly EventFact[],
  bits: readonly number[],
): Map<number, CountBounds> {
  const exact = new Map<number, CountBounds>()
  const flips = bits.map(() => 0)
  const last: State[] = bits.map(() => null)
  for (const together of splitByOrder(sorted)) {
    const values = bits.map((bit) => stateOf(together[0]!, bit))
    const alike = together.every((fact) =>
      bits.every((bit, at) => stateOf(fact, bit) === values[at]),
    )
    if (!alike || !together.every(isAccepted)) break
    values.forEach((value, at) => {
      if (value === null) return
      if (last[at] !== null && last[at] !== value) flips[at]!++
      last[at] = value
    })
    const most = Math.max(...flips)
    // Of equal signals the first in the list is used.
    const signals = most === 0 ? [] : [watchedSignals[bits[flips.indexOf(most)]!]!]
    for (const { event } of together) exact.set(event, { low: most, high: most, signals })
  }
  return exact
}

/** Groups of events: the order of groups is certain, the order within a group is not. */
function splitByOrder(sorted: readonly EventFact[]): EventFact[][] {
  const groups: EventFact[][] = []
  let placedMs = Number.NEGATIVE_INFINITY
  for (const fact of sorted) {
    if (placedMs < fact.sentMs) groups.push([fact])
    else groups.at(-1)!.push(fact)
    placedMs = Math.max(placedMs, placedByMs(fact))
  }
  return groups
}
