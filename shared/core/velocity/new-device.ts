/**
 * Whether a user who is known from another device is new on the device of an event. New is a device
 * on which the user was first seen less than a day ago; known is a user who was seen on another
 * device before that. Both are as of the event's stream offset and within the window of the rule.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import type { Moment } from './windowed-counts.ts'

/** How long a device stays new for a user. */
export const newDeviceMs = dayMs

/** A sighting of the user: on which device, by which event. A device of 0 is a placeholder. */
type UserSighting = Moment & { event: number; userDevice: number }

/** An event to count for. Without its number it is found on no device. */
export type NumberedMoment = Moment & { event?: number }

/**
 * Counts for many events of one user at once, in (rows + events) * log(rows).
 * @param rows in any order, repetitions allowed
 * @returns 1 for an event on a new device of a known user, else 0, in the order of the events
 */
export function countNewDevice(
  rows: readonly UserSighting[],
  windowSeconds: number,
  events: readonly NumberedMoment[],
): number[] {
  const deviceOf = new Map(rows.map(({ event, userDevice }) => [event, userDevice]))
  const coming = [...rows].sort((a, b) => a.streamOffset - b.streamOffset)
  const order = events.map((_, index) => index)
  order.sort((a, b) => events[a]!.streamOffset - events[b]!.streamOffset)
  const counts = new Array<number>(events.length).fill(0)
  const seen: number[] = []
  const seenOn = new Map<number, number[]>()
  let next = 0
  for (const index of order) {
    const { streamOffset, atMs, event } = events[index]!
    for (; next < coming.length && coming[next]!.streamOffset <= streamOffset; next++) {
      const { userDevice, atMs: seenMs } = coming[next]!
      if (userDevice === 0) continue
      insertSorted(seen, seenMs)
      const own = seenOn.get(userDevice)
      if (own === undefined) seenOn.set(userDevice, [seenMs])
      else insertSorted(own, seenMs)
    }
    const device = event === undefined ? undefined : deviceOf.get(event)
    const afterMs = atMs - windowSeconds * 1000
    const firstHere = device === undefined ? undefined : findAfter(seenOn.get(device), afterMs)
    const first = findAfter(seen, afterMs)
    if (firstHere === undefined || first === undefined) continue
    // The first sighting of all is on another device when it is before the first one here.
    if (firstHere > atMs - newDeviceMs && first < firstHere) counts[index] = 1
  }
  return counts
}

/** The index of the first of some ascending times that is later than a limit. */
function toIndexAfter(sorted: readonly number[], limitMs: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! <= limitMs) low = middle + 1
    else high = middle
  }
  return low
}

const findAfter = (sorted: readonly number[] = [], limitMs: number): number | undefined =>
  sorted[toIndexAfter(sorted, limitMs)]

/** Rows come nearly in the order of their times, so most are added at the end. */
function insertSorted(sorted: number[], time: number): void {
  if (sorted.length === 0 || sorted.at(-1)! <= time) sorted.push(time)
  else sorted.splice(toIndexAfter(sorted, time), 0, time)
}
