/**
 * Finds one stored event of any tenant by its id: the edge's decision, its policy, and the
 * submission byte for byte. Of an event that was stored more than once it returns the row received
 * first, which is the one that merges keep.
 */
import { z } from 'zod'
import { type Action, type Reason, reasonSchema } from '#shared/core/scoring/score.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

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

export type EventStore = {
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

/** Creates the store of one ClickHouse. */
export function createEventStore(clickhouse: Clickhouse): EventStore {
  return {
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
  return {
    ...row,
    eventId,
    userId: row.userId === '' ? null : row.userId,
    accountId: row.accountId === '' ? null : row.accountId,
    reasons: readReasons(row.reasons),
  }
}

function readReasons(text: string): Reason[] | null {
  try {
    const parsed = z.array(reasonSchema).safeParse(JSON.parse(text))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}
