/**
 * Reads the events of some devices for a timeline, newest first, each with what was decided of it.
 * Events lie by device, so this is a key range of each; a fleet under one user is bounded by rows
 * and time.
 */
import { timelineDevicesMax } from '#shared/core/base/limits/entities.ts'
import type { TimelineBound } from '#shared/core/devices/timeline.ts'
import { type Clickhouse, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type DecidedEvent,
  type DecidedEventRow,
  decidedEventColumns,
  toDecidedEvent,
} from '#shared/io/telemetry/decided-event.ts'
import { type DecisionRow, decisionColumns } from '#shared/io/telemetry/decision-store.ts'

export type TimelineEventsQuery = {
  tenantId: string
  /** At most `timelineDevicesMax`. */
  deviceIds: readonly string[]
  /** Only of this user or account. */
  userId?: string | undefined
  fromMs: number
  bound: TimelineBound
  limit: number
}

export type TimelineEvents = {
  listTimelineEvents: (query: TimelineEventsQuery) => Promise<DecidedEvent[]>
}

// Repeats of an event count once, at their first receipt.
const eventsSql = (ofUser: string) => `
  select ${decidedEventColumns}
  from telemetry final
  where tenant_id = {tenant:String} and device_id in {devices:Array(String)} ${ofUser}
    and received_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
    and (received_at < fromUnixTimestamp64Milli({before:Int64}, 'UTC')
      or received_at = fromUnixTimestamp64Milli({before:Int64}, 'UTC')
        and event_id < {before_id:String})
  order by received_at desc, event_id desc
  limit {limit:UInt32}`

const ofUserSql = 'and (user_id = {user:String} or account_id = {user:String})'

const decisionsSql = `
  select ${decisionColumns} from decisions
  where tenant_id = {tenant:String} and device_id in {devices:Array(String)}
    and event_id in {events:Array(String)}`

const readMaxMs = 5_000
const rowsReadMax = 5_000_000

export function createTimelineEvents(clickhouse: Pick<Clickhouse, 'query'>): TimelineEvents {
  const read = async <Row>(query: string, query_params: Record<string, unknown>) => {
    const result = await clickhouse.query({
      query,
      query_params,
      clickhouse_settings: {
        ...uncompiled,
        max_threads: 2,
        max_rows_to_read: String(rowsReadMax),
        max_execution_time: readMaxMs / 1_000,
      },
      // Ids of many devices may be longer than an address.
      use_multipart_params_auto: true,
      format: 'JSONEachRow',
      abort_signal: AbortSignal.timeout(readMaxMs + 500),
    })
    return result.json<Row>()
  }
  return {
    listTimelineEvents: async ({ tenantId: tenant, deviceIds, userId, fromMs, bound, limit }) => {
      const devices = deviceIds.slice(0, timelineDevicesMax)
      if (devices.length === 0) return []
      const rows = await read<DecidedEventRow>(eventsSql(userId === undefined ? '' : ofUserSql), {
        tenant,
        devices,
        from: fromMs,
        before: bound.atMs,
        before_id: bound.id,
        limit,
        ...(userId === undefined ? {} : { user: userId }),
      })
      if (rows.length === 0) return []
      const decided = await read<DecisionRow>(decisionsSql, {
        tenant,
        devices: [...new Set(rows.map((row) => row.deviceId))],
        events: rows.map((row) => row.eventId),
      })
      const byId = new Map(decided.map((row) => [row.eventId, row]))
      return rows.map((row) => toDecidedEvent(row, byId.get(row.eventId)))
    },
  }
}
