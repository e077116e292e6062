/**
 * The reconciliation's arithmetic: what a message brings to which tenant and hour, and where the
 * numbers of an hour differ. An hour is that of an event's `received_at`, which the edge gives it
 * once, so every stage counts an event in the same hour however late it gets there.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'

export const reconciliationHourMs = hourMs

/** The beginning of the hour that an instant is in, in ms since 1970. */
export const toReconciliationHour = (ms: number): number =>
  Math.floor(ms / reconciliationHourMs) * reconciliationHourMs

/** What can differ, in the order of the pipeline. */
export const reconciliationStages = [
  'accepted',
  'rows',
  'decisions',
  'alerts',
  'deliveries',
] as const
export type ReconciliationStage = (typeof reconciliationStages)[number]

/** What every stage did with the events of an hour. */
export type ReconciliationHour = {
  tenantId: string
  hourMs: number
  accepted: number
  stored: number
  repeats: number
  refused: number
  erased: number
  rows: number
  decided: number
  alertsExpected: number
  alerts: number
  deliveries: number
  attempted: number
  delivered: number
  inFlight: number
  missing: Record<ReconciliationStage, number>
  unexplainedAlerts: number
  /** Retention has removed its events. */
  expired: boolean
}

/** One way in which an hour's numbers do not agree. */
export type ReconciliationDifference = {
  stage: ReconciliationStage
  /** Things that should be there and are not; or that are there and should not be. */
  kind: 'missing' | 'unexplained'
  count: number
}

/** Every difference of an hour, in the order of the pipeline; none when all agree. */
export function findReconciliationDifferences(
  hour: ReconciliationHour,
): ReconciliationDifference[] {
  const differences: ReconciliationDifference[] = []
  for (const stage of reconciliationStages) {
    const missing = hour.missing[stage]
    if (missing > 0) differences.push({ stage, kind: 'missing', count: missing })
    const unexplained = stage === 'alerts' ? hour.unexplainedAlerts : Math.max(0, -missing)
    if (unexplained > 0) differences.push({ stage, kind: 'unexplained', count: unexplained })
  }
  return differences
}

/** What one message means for one tenant and hour. */
export type ReconciliationEntry = {
  tenantId: string
  hourMs: number
  stage: 'stored' | 'decided'
  streamOffset: number
  events: number
  refused: number
  /** Stored: the events with a row. Decided: the repeats. */
  named: AcceptedEvent[]
}

/** Events of one message, and its stream offset. */
export type ReconciliationMessage = { streamOffset: number; events: readonly AcceptedEvent[] }

/**
 * What a message brings. One without any event has an entry of no tenant, so that no message of the
 * stream is without one.
 * @param refused events that can never be stored
 * @param atMs stands for the hour of a message without events
 */
export function toStoredEntries(
  message: ReconciliationMessage,
  refused: ReadonlySet<AcceptedEvent>,
  atMs: number,
): ReconciliationEntry[] {
  const entries = toEntries(message, 'stored', (entry, event) => {
    if (refused.has(event)) entry.refused++
    else entry.named.push(event)
  })
  if (entries.length > 0) return entries
  return [
    newEntry({ tenantId: '', hourMs: toReconciliationHour(atMs) }, 'stored', message.streamOffset),
  ]
}

/** What was decided of a message. @param repeats events whose bytes had come before */
export function toDecidedEntries(
  message: ReconciliationMessage,
  repeats: ReadonlySet<AcceptedEvent>,
): ReconciliationEntry[] {
  return toEntries(message, 'decided', (entry, event) => {
    if (repeats.has(event)) entry.named.push(event)
  })
}

function toEntries(
  { streamOffset, events }: ReconciliationMessage,
  stage: ReconciliationEntry['stage'],
  add: (entry: ReconciliationEntry, event: AcceptedEvent) => void,
): ReconciliationEntry[] {
  const entries = new Map<string, ReconciliationEntry>()
  for (const event of events) {
    const startMs = toReconciliationHour(event.received_at)
    const key = `${event.tenant_id} ${startMs}`
    let entry = entries.get(key)
    if (entry === undefined) {
      entry = newEntry({ tenantId: event.tenant_id, hourMs: startMs }, stage, streamOffset)
      entries.set(key, entry)
    }
    entry.events++
    add(entry, event)
  }
  return [...entries.values()]
}

const newEntry = (
  of: { tenantId: string; hourMs: number },
  stage: ReconciliationEntry['stage'],
  streamOffset: number,
): ReconciliationEntry => ({ ...of, stage, streamOffset, events: 0, refused: 0, named: [] })
