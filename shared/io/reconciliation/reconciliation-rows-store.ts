/**
 * Writes what reconciliation compares: what a message brings and what was decided of it, the alerts
 * that are due, what edges claim, up to where everything is decided, and what retention is about to
 * remove. Repeating any of it changes nothing.
 */
import { toEventIdBytes } from '#shared/core/base/ids.ts'
import type { AcceptedClaim } from '#shared/core/reconciliation/accepted-claims.ts'
import type { ReconciliationEntry } from '#shared/core/reconciliation/reconciliation.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import {
  type Clickhouse,
  insertRowBinary,
  insertRows,
  toInstant,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'

const entriesInto = `reconciliation_entries
  (tenant_id, hour, stage, stream, stream_offset, published_at, events, refused, ids, places)`
const alertsInto = 'reconciliation_expected_alerts (tenant_id, alert_id, stream, first)'

/** An alert that an event deserves. */
type ExpectedAlert = { alertId: string; event: AcceptedEvent }

export type ReconciliationWriter = {
  /** One call at a time. @throws when ClickHouse cannot be reached */
  insertEntries: (entries: readonly ReconciliationEntry[]) => Promise<void>
  /** One call at a time. @throws when ClickHouse cannot be reached */
  insertExpectedAlerts: (alerts: readonly ExpectedAlert[]) => Promise<void>
}

/** What a scorer writes. @param stream the number of the telemetry stream */
export function createReconciliationWriter(
  clickhouse: Clickhouse,
  stream = 1,
): ReconciliationWriter {
  const entryRows = createRowWriter()
  const alertRows = createRowWriter()
  return {
    insertEntries: async (entries) => {
      if (entries.length === 0) return
      entryRows.reset()
      for (const entry of entries) writeEntry(entryRows, entry, stream)
      await insertRowBinary(clickhouse, entriesInto, entryRows.written())
    },
    insertExpectedAlerts: async (alerts) => {
      if (alerts.length === 0) return
      alertRows.reset()
      for (const { alertId, event } of alerts) {
        alertRows.string(event.tenant_id)
        alertRows.string(alertId)
        alertRows.uint8(stream)
        alertRows.int64(event.streamOffset)
        alertRows.uint32(toHourSeconds(event.received_at))
      }
      await insertRowBinary(clickhouse, alertsInto, alertRows.written())
    },
  }
}

const hourSeconds = 3_600
/** An edge's clock may be anywhere; DateTime is of 1970 to 2106. */
const toHourSeconds = (ms: number): number =>
  Math.min(0xffff_fff0, Math.max(0, Math.floor(ms / 1_000 / hourSeconds) * hourSeconds))

/** A message that a scorer stored. */
export type RecordedMessage = { streamOffset: number; publishedMs: number }

/**
 * The stored message of a stream with the highest offset, from an offset on; null when there is
 * none.
 * @throws when ClickHouse cannot be reached
 */
export async function readNewestMessage(
  clickhouse: Clickhouse,
  { stream, fromOffset }: { stream: number; fromOffset: number },
): Promise<RecordedMessage | null> {
  const result = await clickhouse.query({
    query: `select toFloat64(stream_offset) as streamOffset,
        toUnixTimestamp64Milli(published_at) as publishedMs
      from reconciliation_entries
      where stage = 'stored' and stream = {stream:UInt8} and stream_offset >= {from:UInt64}
      order by stream_offset desc limit 1`,
    query_params: { stream, from: fromOffset },
    format: 'JSONEachRow',
  })
  const [newest] = await result.json<RecordedMessage>()
  return newest ?? null
}

const stageValues = { stored: 1, decided: 2 } as const

function writeEntry(writer: RowWriter, entry: ReconciliationEntry, stream: number): void {
  writer.string(entry.tenantId)
  writer.uint32(toHourSeconds(entry.hourMs))
  writer.uint8(stageValues[entry.stage])
  writer.uint8(stream)
  writer.int64(entry.streamOffset)
  writer.int64(entry.publishedMs)
  writer.uint16(entry.events)
  writer.uint16(entry.refused)
  writer.arrayLength(entry.named.length)
  for (const event of entry.named) writer.fixed(toEventIdBytes(event.event_id))
  writer.arrayLength(entry.named.length)
  for (const event of entry.named) writer.uint8(event.streamOffset - entry.streamOffset)
}

/** What edges claim to have accepted; of one edge's claims on an hour the highest counts. */
export async function insertAcceptedClaims(
  clickhouse: Clickhouse,
  claims: readonly AcceptedClaim[],
): Promise<void> {
  await insertRows(
    clickhouse,
    'reconciliation_accepted',
    claims.flatMap(({ edge_id, hour_ms, accepted }) =>
      Object.entries(accepted).map(([tenant_id, count]) => ({
        tenant_id,
        edge_id,
        accepted: count,
        hour: toHourSeconds(hour_ms),
      })),
    ),
  )
}

/** A stream, and the offset below which everything of it is decided. */
export type DecidedMark = { stream: number; streamOffset: number }

/**
 * Records that everything before an offset of each stream was decided at an instant of Postgres'
 * clock.
 */
export async function markDecided(
  clickhouse: Clickhouse,
  { marks, atMs }: { marks: readonly DecidedMark[]; atMs: number },
): Promise<void> {
  await insertRows(
    clickhouse,
    'reconciliation_watermarks',
    marks.map(({ stream, streamOffset }) => ({
      at: toInstant(atMs),
      stream,
      stream_offset: streamOffset,
    })),
  )
}

/** Before which instants retention removes a tenant's data; null for without limit. */
type ReconciliationCutoff = {
  tenantId: string
  eventsMs: number | null
  alertsMs: number | null
  deliveriesMs: number | null
}

/** Call it before a removal: older rows are not compared afterwards. */
export async function insertCutoffs(
  clickhouse: Clickhouse,
  cutoffs: readonly ReconciliationCutoff[],
): Promise<void> {
  const toCutoff = (ms: number | null) => toInstant(Math.max(0, ms ?? 0))
  await insertRows(
    clickhouse,
    'reconciliation_cutoffs',
    cutoffs.map(({ tenantId, eventsMs, alertsMs, deliveriesMs }) => ({
      tenant_id: tenantId,
      events: toCutoff(eventsMs),
      alerts: toCutoff(alertsMs),
      deliveries: toCutoff(deliveriesMs),
    })),
  )
}
