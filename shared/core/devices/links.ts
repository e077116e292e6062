/**
 * Links of a device or a user: others that share a user, a device or a session with it. Pure: the
 * pairs come from the store.
 */
import { linkedMax, sharedShownMax } from '#shared/core/base/limits/entities.ts'

/** One of the others, and what it has in common: a user, a device, or a session. */
export type SharedPair = { id: string; sharedId: string; lastSeenAtMs: number }

export type Linked = {
  id: string
  /** When it was last seen with anything that is shared. */
  lastSeenAtMs: number
  /** The latest users or devices in common. */
  shared: { id: string; lastSeenAtMs: number }[]
  sharedTotal: number
  /** Sessions in common. */
  sessions: number
}

/**
 * Joins pairs to the others that are linked. Those with most in common are first, then the latest.
 * @returns at most `linkedMax`, and how many there are in the pairs
 */
export function toLinked(
  pairs: readonly SharedPair[],
  sessionPairs: readonly SharedPair[],
): { linked: Linked[]; total: number } {
  const byId = new Map<string, Linked>()
  const take = ({ id, lastSeenAtMs }: SharedPair): Linked => {
    const known = byId.get(id) ?? { id, lastSeenAtMs, shared: [], sharedTotal: 0, sessions: 0 }
    byId.set(id, known)
    known.lastSeenAtMs = Math.max(known.lastSeenAtMs, lastSeenAtMs)
    return known
  }
  for (const pair of pairs) {
    take(pair).shared.push({ id: pair.sharedId, lastSeenAtMs: pair.lastSeenAtMs })
  }
  for (const pair of sessionPairs) take(pair).sessions += 1
  const all = [...byId.values()]
  for (const one of all) one.sharedTotal = one.shared.length
  const linked = all.sort(compareLinked).slice(0, linkedMax)
  for (const one of linked) one.shared = one.shared.sort(compareLatest).slice(0, sharedShownMax)
  return { linked, total: all.length }
}

type Sighting = { id: string; lastSeenAtMs: number }

const compareLatest = (a: Sighting, b: Sighting): number =>
  b.lastSeenAtMs - a.lastSeenAtMs || (a.id < b.id ? -1 : 1)

const compareLinked = (a: Linked, b: Linked): number =>
  b.sharedTotal + b.sessions - a.sharedTotal - a.sessions || compareLatest(a, b)
