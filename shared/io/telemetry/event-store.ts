/**
 * Finds one stored event by its id: the edge's verdict, its policy, the submission byte for byte,
 * and what was decided. Of an event that was stored more than once it returns the row received
 * first, which is the one that merges keep.
 */
import type { Action, Reason } from '#shared/core/scoring/score.ts'
import type { ServerSignals } from '#shared/core/signals/signal-definition.ts'
import type { EventHeader } from '#shared/core/telemetry/event-batch.ts'
import { type Clickhouse, smallQuery, smallQueryOf } from '#shared/io/clickhouse/clickhouse.ts'
import { nodeOfDevice } from '#shared/io/clickhouse/shards.ts'
import {
  installColumns,
  type StoredInstall,
  toInstall,
} from '#shared/io/installs/stored-install.ts'
import {
  connectionColumns,
  type StoredConnection,
  toEventConnection,
} from '#shared/io/network/stored-connection.ts'
import {
  type DecidedEvent,
  type DecidedEventRow,
  decidedEventColumns,
  toDecidedEvent,
} from './decided-event.ts'
import { type DecisionRow, decisionColumns } from './decision-store.ts'
import { readReasons } from './stored-reasons.ts'

export type StoredEvent = {
  tenantId: string
  deviceId: string
  sessionId: string
  eventId: string
  /** Its stream offset. */
  streamOffset: number
  receivedAtMs: number
  /** Null when the client sent none. */
  userId: string | null
  accountId: string | null
  sdkVersion: string
  platform: string
  raspScore: number
  raspAction: Action
  flags: string[]
  /** Null when the stored reasons are not valid. */
  reasons: Reason[] | null
  policyVersion: number
  policyHash: string
  epoch: number
  /** The install whose key signed it; undefined when the tenant's own secret did. */
  install: EventHeader['install']
  /** Where it came from; undefined where nothing was measured. */
  connection: EventHeader['connection']
  /** What the edge observed or verified. */
  serverSignals: ServerSignals
  body: string
}

/** What identifies the row of an event. */
export type EventKey = { tenantId: string; deviceId: string; sessionId: string; eventId: string }

export type EventStore = {
  /** An event of one tenant. @returns null when the tenant has no such event */
  findDecidedEvent: (key: { tenantId: string; eventId: string }) => Promise<DecidedEvent | null>
  /** @returns null when there is no such event */
  findEvent: (eventId: string) => Promise<StoredEvent | null>
  /** The stored decision of an event; undefined when it is the edge's own. */
  findDecision: (key: EventKey) => Promise<DecisionRow | undefined>
}

type Row = Omit<
  { [Key in keyof StoredEvent]: NonNullable<StoredEvent[Key]> },
  'eventId' | 'reasons' | 'install' | 'connection'
> & { reasons: string; storedConnection: StoredConnection } & StoredInstall

// Without FINAL, which reads the keys of the whole table: the bloom index of event_id leaves a few
// granules, and the order selects the row that FINAL would return.
const eventSql = `
  select tenant_id as tenantId, device_id as deviceId, session_id as sessionId,
    toFloat64(stream_offset) as streamOffset, toUnixTimestamp64Milli(received_at) as receivedAtMs,
    user_id as userId, account_id as accountId, sdk_version as sdkVersion, platform,
    rasp_score as raspScore,
    toString(rasp_action) as raspAction, flags, reasons, policy_version as policyVersion,
    policy_hash as policyHash, epoch, server_signals as serverSignals, body, ${installColumns},
    tuple(${connectionColumns}) as storedConnection
  from telemetry
  where event_id = {event:String}
  order by received_at
  limit 1`

const decidedEventSql = `
  select ${decidedEventColumns}
  from telemetry
  where tenant_id = {tenant:String} and event_id = {event:String}
  order by received_at
  limit 1`

const decisionSql = `
  select ${decisionColumns}
  from decisions
  where tenant_id = {tenant:String} and device_id = {device:String}
    and session_id = {session:String} and event_id = {event:String}
  limit 1`

/** How long a caller of the REST API waits for an event, including for a connection. */
const eventMaxMs = 2_500

/** Creates the store of one ClickHouse. */
export function createEventStore(clickhouse: Clickhouse): EventStore {
  const findDecision = async (key: EventKey) => {
    const { tenantId: tenant, deviceId: device, sessionId: session, eventId: event } = key
    const result = await nodeOfDevice(clickhouse, device).query({
      query: decisionSql,
      query_params: { tenant, device, session, event },
      clickhouse_settings: smallQuery,
      format: 'JSONEachRow',
      abort_signal: AbortSignal.timeout(eventMaxMs),
    })
    const [row] = await result.json<DecisionRow>()
    return row
  }
  return {
    findDecision,
    findDecidedEvent: async ({ tenantId, eventId }) => {
      const result = await clickhouse.query({
        query: decidedEventSql,
        query_params: { tenant: tenantId, event: eventId },
        clickhouse_settings: smallQueryOf(clickhouse),
        format: 'JSONEachRow',
        abort_signal: AbortSignal.timeout(eventMaxMs),
      })
      const [row] = await result.json<DecidedEventRow>()
      return row === undefined ? null : toDecidedEvent(row, await findDecision(row))
    },
    findEvent: async (eventId) => {
      const result = await clickhouse.query({
        query: eventSql,
        query_params: { event: eventId },
        format: 'JSONEachRow',
      })
      const [row] = await result.json<Row>()
      if (row === undefined) return null
      const { installToken, attestedKey, assertionCounter, storedConnection, ...event } = row
      const install = toInstall({ installToken, attestedKey, assertionCounter })
      const connection = toEventConnection(storedConnection)
      return { ...event, ...toTexts(row), install, connection, eventId }
    },
  }
}

/** Columns that are empty, or JSON, in ClickHouse. */
type RowTexts = { userId: string; accountId: string; reasons: string }

const toTexts = ({ userId, accountId, reasons }: RowTexts) => ({
  userId: userId === '' ? null : userId,
  accountId: accountId === '' ? null : accountId,
  reasons: readReasons(reasons),
})
