/**
 * The arithmetic of reconciliation: what a message counts for which tenant and hour, and where the
 * counts of an hour differ. The hour is that of an event's `received_at`, which the edge sets once,
 * so every stage counts an event in the same hour however late it arrives.
 */
import { hourMs } from '#shared/core/base/instants.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'

export const reconciliationHourMs = hourMs

/** The start of an instant's hour, in ms since 1970. */
export const toReconciliationHour = (ms: number): number =>
  Math.floor(ms / reconciliationHourMs) * reconciliationHourMs

/** The compared stages, in the order of the pipeline. */
export const reconciliationStages = [
  'accepted',
  'rows',
  'decisions',
  'alerts',
  'deliveries',
] as const
export type ReconciliationStage = (typeof reconciliationStages)[number]

/** The counts of every stage for the events of an hour. */
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

/** One difference between the counts of an hour. */
export type ReconciliationDifference = {
  stage: ReconciliationStage
  /** `missing`: expected but absent. `unexplained`: present but not expected. */
  kind: 'missing' | 'unexplained'
  count: number
}

/** Every difference of an hour, in the order of the pipeline; empty when all counts agree. */
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

/** The counts of one message for one tenant and hour. */
export type ReconciliationEntry = {
  tenantId: string
  hourMs: number
  stage: 'stored' | 'decided'
  streamOffset: number
  events: number
  refused: number
  /** Stored: the events with a row. Decided: the repeats. */
  named: AcceptedEvent[]
  /** Stored: when the stream stored the message, in ms since 1970. Decided: 0. */
  publishedMs: number
}

/** Events of one message, and its stream offset. */
export type ReconciliationMessage = { streamOffset: number; events: readonly AcceptedEvent[] }

/**
 * The entries of a stored message. A message without events gets an entry without a tenant, so
 * every message of the stream has an entry.
 * @param refused events that can never be stored
 * @param atMs the time for the hour of a message without events, in ms since 1970
 */
export function toStoredEntries(
  message: ReconciliationMessage & Pick<ReconciliationEntry, 'publishedMs'>,
  refused: ReadonlySet<AcceptedEvent>,
  atMs: number,
): ReconciliationEntry[] {
  const { publishedMs } = message
  const entries = toEntries(message, 'stored', (entry, event) => {
    if (refused.has(event)) entry.refused++
    else entry.named.push(event)
  })
  if (entries.length > 0) return entries.map((entry) => ({ ...entry, publishedMs }))
  const ofHour = { tenantId: '', hourMs: toReconciliationHour(atMs) }
  return [{ ...newEntry(ofHour, 'stored', message.streamOffset), publishedMs }]
}

/**
 * The entries of a decided message.
 * @param repeats events whose bytes were accepted before
 */
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
  hour: { tenantId: string; hourMs: number },
  stage: ReconciliationEntry['stage'],
  streamOffset: number,
): ReconciliationEntry => ({
  ...hour,
  stage,
  streamOffset,
  events: 0,
  refused: 0,
  named: [],
  publishedMs: 0,
})
