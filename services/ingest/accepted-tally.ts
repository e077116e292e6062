/**
 * How many events this edge has answered with a 200, by tenant and hour, since its start: its claim
 * in reconciliation. Counting is an addition; an hour is forgotten some hours after it has been
 * reported for the last time.
 */
import {
  reconciliationHourMs,
  toReconciliationHour,
} from '#shared/core/reconciliation/reconciliation.ts'

/** One hour's claims of a part of the tenants. */
export type TallyPart = { hourMs: number; part: number; accepted: Record<string, number> }

export type AcceptedTally = {
  /** Counts one event, once its message is stored. */
  count: (tenantId: string, receivedAtMs: number) => void
  /** Takes what has changed since it was taken last, with its counts since the start. */
  drainChanged: () => TallyPart[]
  /** Gives back what was taken and could not be reported. */
  requeue: (part: Pick<TallyPart, 'hourMs' | 'part'>) => void
}

/** Tenants of one report: 1,000 ids of 63 characters are less than 100 KB. */
const tenantsPerPart = 1_000
/** An event's hour is over long before; its claims are reported by then, or lost. */
const hoursKept = 4

type Count = { accepted: number; part: number }
type Hour = { counts: Map<string, Count>; changed: Set<number> }

export function createAcceptedTally(): AcceptedTally {
  const hours = new Map<number, Hour>()
  // Events come in runs of one tenant and hour: for those there is nothing to look up.
  let lastTenantId = ''
  let lastFromMs = 0
  let lastToMs = 0
  let last: Count = { accepted: 0, part: 0 }
  let lastHour: Hour = { counts: new Map(), changed: new Set() }
  const find = (tenantId: string, receivedAtMs: number) => {
    lastTenantId = tenantId
    lastFromMs = toReconciliationHour(receivedAtMs)
    lastToMs = toReconciliationHour(receivedAtMs + 3_600_000)
    let hour = hours.get(lastFromMs)
    if (hour === undefined) {
      hour = { counts: new Map(), changed: new Set() }
      hours.set(lastFromMs, hour)
    }
    lastHour = hour
    let count = hour.counts.get(tenantId)
    if (count === undefined) {
      count = { accepted: 0, part: Math.floor(hour.counts.size / tenantsPerPart) }
      hour.counts.set(tenantId, count)
    }
    last = count
  }
  return {
    count: (tenantId, receivedAtMs) => {
      if (tenantId !== lastTenantId || receivedAtMs < lastFromMs || receivedAtMs >= lastToMs) {
        find(tenantId, receivedAtMs)
      }
      last.accepted++
      lastHour.changed.add(last.part)
    },
    drainChanged: () => {
      const taken = [...hours].flatMap(([hourMs, hour]) => takeHour(hourMs, hour))
      const newest = Math.max(...hours.keys())
      for (const [hourMs, { changed }] of hours) {
        if (changed.size === 0 && newest - hourMs > hoursKept * reconciliationHourMs)
          hours.delete(hourMs)
      }
      lastTenantId = ''
      return taken
    },
    requeue: ({ hourMs, part }) => hours.get(hourMs)?.changed.add(part),
  }
}

function takeHour(hourMs: number, { counts, changed }: Hour): TallyPart[] {
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
