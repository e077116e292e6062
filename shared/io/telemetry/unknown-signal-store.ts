/**
 * Reads which signals a tenant's SDKs send that the catalog does not know: by signal, SDK version
 * and platform. An event counts once, however often it was delivered.
 */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** One unknown signal as one SDK version sends it. Times are ISO-8601. */
export type UnknownSignal = {
  /** `category.name` */
  signal: string
  sdk_version: string
  platform: string
  events: number
  devices: number
  first_seen_at: string
  last_seen_at: string
}

export type UnknownSignalQuestion = {
  tenantId: string
  /** How far to look back. */
  days: number
  limit: number
}

/** What of a tenant's signals only the stored bodies have. */
export type SignalsLeftOut = { events: number; values: number }

export type UnknownSignalStore = {
  /** How much was left out because the tenant sends more names than are stored. */
  countLeftOut: (question: Omit<UnknownSignalQuestion, 'limit'>) => Promise<SignalsLeftOut>
  /** Those of the most events first. */
  listUnknownSignals: (question: UnknownSignalQuestion) => Promise<UnknownSignal[]>
}

type Row = [
  signal: string,
  sdkVersion: string,
  platform: string,
  events: number,
  devices: number,
  firstSeenAtMs: number,
  lastSeenAtMs: number,
]

/** Less than a client's patience, so that nobody leaves it running. */
const queryMaxSeconds = 25

// FINAL makes one row of an event that was stored more than once, in the order of the key, without
// holding what it has seen. The rows that it has to look at are chosen before it: all copies of an
// event have the same signals.
const unknownSql = `
  select
    signal, sdk_version, platform,
    count() as events,
    uniqExact(device_id) as devices,
    toUnixTimestamp64Milli(min(received_at)),
    toUnixTimestamp64Milli(max(received_at))
  from telemetry final
  array join unknown_signals as signal
  prewhere tenant_id = {tenant:String}
    and received_at > now64(3) - toIntervalDay({days:UInt16})
    and notEmpty(unknown_signals)
  group by signal, sdk_version, platform
  order by events desc, signal, sdk_version, platform
  limit {limit:UInt32}`

const leftOutSql = `
  select count(), sum(signals_left_out)
  from telemetry final
  prewhere tenant_id = {tenant:String}
    and received_at > now64(3) - toIntervalDay({days:UInt16})
    and signals_left_out > 0`

/**
 * Clients choose the names. Beyond so many groups no further ones begin: what is asked for is what
 * an SDK sends, not what somebody makes up.
 */
const groupsMax = 100_000

export function createUnknownSignalStore(clickhouse: Clickhouse): UnknownSignalStore {
  return {
    countLeftOut: async ({ tenantId, days }) => {
      const result = await clickhouse.query({
        query: leftOutSql,
        query_params: { tenant: tenantId, days },
        clickhouse_settings: { max_execution_time: queryMaxSeconds },
        format: 'JSONCompactEachRow',
      })
      const [row] = await result.json<[events: number | string, values: number | string]>()
      return { events: Number(row![0]), values: Number(row![1]) }
    },
    listUnknownSignals: async ({ tenantId, days, limit }) => {
      const result = await clickhouse.query({
        query: unknownSql,
        query_params: { tenant: tenantId, days, limit },
        // It reads a tenant's telemetry of those days: a million events take half a second.
        clickhouse_settings: {
          max_execution_time: queryMaxSeconds,
          max_rows_to_group_by: String(groupsMax),
          group_by_overflow_mode: 'any',
        },
        format: 'JSONCompactEachRow',
      })
      return (await result.json<Row>()).map(toUnknownSignal)
    },
  }
}

function toUnknownSignal(row: Row): UnknownSignal {
  const [signal, sdkVersion, platform, events, devices, firstSeenAtMs, lastSeenAtMs] = row
  return {
    signal,
    sdk_version: sdkVersion,
    platform,
    events,
    devices,
    first_seen_at: new Date(firstSeenAtMs).toISOString(),
    last_seen_at: new Date(lastSeenAtMs).toISOString(),
  }
}
