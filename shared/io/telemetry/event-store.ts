/**
 * Finds one stored event of any tenant by its id: the edge's decision, its policy, and the
 * submission byte for byte. Of an event that was stored more than once it returns the row received
 * first, which is the one that merges keep.
 */
import { z } from 'zod'
import { reasonSchema } from '#shared/core/scoring/reason-schema.ts'
import type { Action, Reason } from '#shared/core/scoring/score.ts'
import { type Clickhouse, smallQueryOf } from '#shared/io/clickhouse/clickhouse.ts'

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
  body: string
}

/** An event as the edge scored it, without its body. */
export type ScoredEvent = Omit<StoredEvent, 'streamOffset' | 'policyHash' | 'epoch' | 'body'> & {
  batchType: string
}

export type EventStore = {
  /** An event of one tenant. @returns null when the tenant has no such event */
  findScoredEvent: (of: { tenantId: string; eventId: string }) => Promise<ScoredEvent | null>
  /** @returns null when there is no such event */
  findEvent: (eventId: string) => Promise<StoredEvent | null>
}

type Row = Omit<
  { [Key in keyof StoredEvent]: NonNullable<StoredEvent[Key]> },
  'eventId' | 'reasons'
> & { reasons: string }

// Without FINAL, which reads the keys of the whole table: the bloom index of event_id leaves a few
// granules, and the order selects the row that FINAL would return.
const eventSql = `
  select tenant_id as tenantId, device_id as deviceId, session_id as sessionId,
    toFloat64(stream_offset) as streamOffset, toUnixTimestamp64Milli(received_at) as receivedAtMs,
    user_id as userId, account_id as accountId, sdk_version as sdkVersion, platform,
    rasp_score as raspScore,
    toString(rasp_action) as raspAction, flags, reasons, policy_version as policyVersion,
    policy_hash as policyHash, epoch, body
  from telemetry
  where event_id = {event:String}
  order by received_at
  limit 1`

const scoredEventSql = `
  select tenant_id as tenantId, device_id as deviceId, session_id as sessionId,
    toUnixTimestamp64Milli(received_at) as receivedAtMs, user_id as userId,
    account_id as accountId, sdk_version as sdkVersion, platform, batch_type as batchType,
    rasp_score as raspScore, toString(rasp_action) as raspAction, flags, reasons,
    policy_version as policyVersion
  from telemetry
  where tenant_id = {tenant:String} and event_id = {event:String}
  order by received_at
  limit 1`

/** How long a caller of the REST API waits for an event, including for a connection. */
const scoredEventMaxMs = 2_500

/** Creates the store of one ClickHouse. */
export function createEventStore(clickhouse: Clickhouse): EventStore {
  return {
    findScoredEvent: async ({ tenantId, eventId }) => {
      const result = await clickhouse.query({
        query: scoredEventSql,
        query_params: { tenant: tenantId, event: eventId },
        clickhouse_settings: smallQueryOf(clickhouse),
        format: 'JSONEachRow',
        abort_signal: AbortSignal.timeout(scoredEventMaxMs),
      })
      const [row] = await result.json<Omit<ScoredEvent, 'eventId' | keyof RowTexts> & RowTexts>()
      return row === undefined ? null : { ...row, ...toTexts(row), eventId }
    },
    findEvent: async (eventId) => {
      const result = await clickhouse.query({
        query: eventSql,
        query_params: { event: eventId },
        format: 'JSONEachRow',
      })
      const [row] = await result.json<Row>()
      return row === undefined ? null : toEvent(eventId, row)
    },
  }
}

function toEvent(eventId: string, row: Row): StoredEvent {
  return { ...row, ...toTexts(row), eventId }
}

/** Columns that are empty, or JSON, in ClickHouse. */
type RowTexts = { userId: string; accountId: string; reasons: string }

const toTexts = ({ userId, accountId, reasons }: RowTexts) => ({
  userId: userId === '' ? null : userId,
  accountId: accountId === '' ? null : accountId,
  reasons: readReasons(reasons),
})

function readReasons(text: string): Reason[] | null {
  try {
    const parsed = z.array(reasonSchema).safeParse(JSON.parse(text))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}
