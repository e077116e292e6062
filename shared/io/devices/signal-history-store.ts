/**
 * Reads when a device's signals were detected, by the client or by the service, and the events at
 * which what the client measured changed.
 * Both read narrow columns of one key range, so a device with very many events is bounded by rows
 * and time.
 */
import { changedEventsMax, signalsOfDeviceMax } from '#shared/core/base/limits/entities.ts'
import type { MeasuredEvent, SignalSpan } from '#shared/core/devices/signal-changes.ts'
import { type Clickhouse, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'
import { readRowsInPieces } from '#shared/io/clickhouse/clickhouse-rows.ts'
import { nodeOfDevice } from '#shared/io/clickhouse/shards.ts'

export type SignalHistory = {
  /** By first detection. */
  spans: SignalSpan[]
  /** In their order of time and event id, the latest ones. */
  events: MeasuredEvent[]
  /** Whether `events` has all of them. */
  complete: boolean
}

export type SignalHistoryStore = {
  /** @returns nothing for an unknown device */
  readSignalHistory: (device: { tenantId: string; deviceId: string }) => Promise<SignalHistory>
}

// Repeats of an event count once, at their first receipt.
const ofDevice = 'where tenant_id = {tenant:String} and device_id = {device:String}'

// Every device without an install sends its events without a token: that says something of a device
// that has registered one.
const spansSql = `
  select signal, toUnixTimestamp64Milli(min(received_at)) as first,
    argMin(event_id, (received_at, event_id)), argMin(session_id, (received_at, event_id)),
    toUnixTimestamp64Milli(max(received_at)), argMax(session_id, (received_at, event_id))
  from telemetry final
  array join arrayConcat(detected_signals, detected_server_signals) as signal
  ${ofDevice}
    and (signal != 'attestation.missing' or (select count() > 0 from installs ${ofDevice}))
  group by signal order by first, signal limit ${signalsOfDeviceMax}`

const eventsSql = `
  select toUnixTimestamp64Milli(received_at), event_id, session_id, bitAnd(detected, 4294967295),
    bitShiftRight(detected, 32), bitAnd(clean, 4294967295), bitShiftRight(clean, 32)
  from (
    select received_at, event_id, session_id, detected_bits as detected, clean_bits as clean,
      lagInFrame((detected_bits, clean_bits)) over (
        order by received_at, event_id rows between 1 preceding and current row
      ) as before
    from telemetry final ${ofDevice}
  )
  where (detected, clean) != before
  order by received_at desc, event_id desc limit ${changedEventsMax + 1}`

/** How long a query may take, and the most rows that it reads: some hundred bytes of each. */
const readMaxMs = 5_000
const rowsReadMax = 5_000_000

type SpanRow = [string, number, string, string, number, string]
type EventRow = [number, string, string, number, number, number, number]

export function createSignalHistoryStore(clickhouse: Clickhouse): SignalHistoryStore {
  const read = async <Row>(query: string, params: { tenant: string; device: string }) => {
    const rows: Row[] = []
    for await (const piece of readRowsInPieces<Row>(nodeOfDevice(clickhouse, params.device), {
      query,
      query_params: params,
      clickhouse_settings: {
        ...uncompiled,
        max_threads: 2,
        max_rows_to_read: String(rowsReadMax),
        max_execution_time: readMaxMs / 1_000,
      },
      abort_signal: AbortSignal.timeout(readMaxMs + 500),
    })) {
      rows.push(...piece)
    }
    return rows
  }
  return {
    readSignalHistory: async ({ tenantId, deviceId }) => {
      const params = { tenant: tenantId, device: deviceId }
      const spans = await read<SpanRow>(spansSql, params)
      const rows = await read<EventRow>(eventsSql, params)
      return {
        spans: spans.map((row) => ({
          signal: row[0],
          firstAtMs: row[1],
          firstEventId: row[2],
          firstSessionId: row[3],
          lastAtMs: row[4],
          lastSessionId: row[5],
        })),
        events: rows
          .slice(0, changedEventsMax)
          .reverse()
          .map((row) => ({
            atMs: row[0],
            eventId: row[1],
            sessionId: row[2],
            detected: [row[3], row[4]],
            clean: [row[5], row[6]],
          })),
        complete: rows.length <= changedEventsMax,
      }
    },
  }
}
