/**
 * Counts the events that this edge has answered with 200 since its start, by tenant and hour: its
 * claim in reconciliation. An hour is removed some hours after its last report.
 */
import {
  reconciliationHourMs,
  toReconciliationHour,
} from '#shared/core/reconciliation/reconciliation.ts'

/** One hour's counts of a part of the tenants. */
type TallyPart = { hourMs: number; part: number; accepted: Record<string, number> }

export type AcceptedTally = {
  /** Counts one event. Call it when its message is stored. */
  count: (tenantId: string, receivedAtMs: number) => void
  /** Returns the parts that changed since the last call, with their counts since the start. */
  drainChanged: () => TallyPart[]
  /** Marks a part that could not be reported as changed again. */
  requeue: (part: Pick<TallyPart, 'hourMs' | 'part'>) => void
}

/** Tenants per part: 1,000 ids of 63 characters are less than 100 KB. */
const tenantsPerPart = 1_000
/** Hours kept: an event is stored within seconds, so older hours no longer change. */
const hoursKept = 4

type Count = { accepted: number; part: number }
type Hour = { counts: Map<string, Count>; changed: Set<number> }

/** Creates an empty tally. */
export function createAcceptedTally(): AcceptedTally {
  const hours = new Map<number, Hour>()
  const findHour = (hourMs: number): Hour => {
    const hour = hours.get(hourMs) ?? { counts: new Map(), changed: new Set() }
    hours.set(hourMs, hour)
    return hour
  }
  return {
    count: (tenantId, receivedAtMs) => {
      const { counts, changed } = findHour(toReconciliationHour(receivedAtMs))
      let count = counts.get(tenantId)
      if (count === undefined) {
        count = { accepted: 0, part: Math.floor(counts.size / tenantsPerPart) }
        counts.set(tenantId, count)
      }
      count.accepted++
      changed.add(count.part)
    },
    drainChanged: () => {
      const parts = [...hours].flatMap(([hourMs, hour]) => drainHour(hourMs, hour))
      const newest = Math.max(...hours.keys())
      for (const [hourMs, { changed }] of hours) {
        if (changed.size === 0 && newest - hourMs > hoursKept * reconciliationHourMs) {
          hours.delete(hourMs)
        }
      }
      return parts
    },
    requeue: ({ hourMs, part }) => hours.get(hourMs)?.changed.add(part),
  }
}

function drainHour(hourMs: number, { counts, changed }: Hour): TallyPart[] {
  if (changed.size === 0) return []
  const parts = new Map<number, TallyPart>()
  for (const part of changed) parts.set(part, { hourMs, part, accepted: {} })
  for (const [tenantId, { accepted, part }] of counts) {
    const of = parts.get(part)
    if (of !== undefined) of.accepted[tenantId] = accepted
  }
  changed.clear()
  return [...parts.values()]
}
