/**
 * Reads the unknown signals that a tenant's SDKs send, by signal, SDK version and platform. A
 * redelivered event counts once.
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

type UnknownSignalQuery = {
  tenantId: string
  /** The last so many days. */
  days: number
  limit: number
}

/** Signals of a tenant that only the stored bodies have. */
type SignalsLeftOut = { events: number; values: number }

export type UnknownSignalStore = {
  /** Counts the different names of the last hour. */
  countRecentNames: (tenantId: string) => Promise<number>
  /** Counts signals left out because the tenant sends more names than are stored. */
  countLeftOut: (query: Omit<UnknownSignalQuery, 'limit'>) => Promise<SignalsLeftOut>
  /** Most events first. */
  listUnknownSignals: (query: UnknownSignalQuery) => Promise<UnknownSignal[]>
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

/** Below the time limits of clients, so that no abandoned query runs on. */
const queryMaxSeconds = 25

// FINAL merges the rows of a repeated event in key order, with little memory. PREWHERE selects the
// rows before: all copies of an event have the same signals.
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

const recentSql = `
  select uniqExactArray(unknown_signals) from telemetry
  prewhere tenant_id = {tenant:String}
    and received_at > now64(3) - toIntervalHour(1)
    and notEmpty(unknown_signals)`

/** Clients choose the names: further groups are ignored. */
const groupsMax = 100_000

/** Creates the store of one ClickHouse. */
export function createUnknownSignalStore(clickhouse: Clickhouse): UnknownSignalStore {
  return {
    countRecentNames: async (tenantId) => {
      const result = await clickhouse.query({
        query: recentSql,
        query_params: { tenant: tenantId },
        clickhouse_settings: { max_execution_time: queryMaxSeconds },
        format: 'JSONCompactEachRow',
      })
      const [row] = await result.json<[names: number | string]>()
      return Number(row![0])
    },
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
        // A million events take half a second.
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
