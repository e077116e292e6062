/**
 * Reads which signals a tenant's SDKs send that the catalog does not know: by signal, SDK version
 * and platform. An event counts once, however often it was delivered.
 */
import type { Clickhouse } from './clickhouse.ts'

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

export type UnknownSignalStore = {
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

export function createUnknownSignalStore(clickhouse: Clickhouse): UnknownSignalStore {
  return {
    listUnknownSignals: async ({ tenantId, days, limit }) => {
      const result = await clickhouse.query({
        query: unknownSql,
        query_params: { tenant: tenantId, days, limit },
        // It reads a tenant's telemetry of those days: a million events take half a second.
        clickhouse_settings: { max_execution_time: queryMaxSeconds },
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
