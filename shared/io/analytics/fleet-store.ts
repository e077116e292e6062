/**
 * Reads a tenant's fleet over time: events, devices and sessions by SDK version and platform, and
 * on how many devices each signal was detected. Events are exact; devices and sessions are counted
 * by sketches, exact to tens of thousands and within a percent beyond.
 */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

export type FleetSpan = { tenantId: string; fromMs: number; toMs: number; stepSeconds: number }

export type FleetCounts = { events: number; devices: number; sessions: number }

export type FleetVersion = FleetCounts & {
  platform: string
  sdkVersion: string
  firstSeenMs: number
  lastSeenMs: number
}

/** One point in time of one platform and version. */
export type FleetPoint = FleetCounts & { atMs: number; platform: string; sdkVersion: string }

/** `platform` is null in a row about all versions. */
export type FleetSignal = {
  platform: string | null
  sdkVersion: string
  signal: string
  devices: number
}

export type FleetStore = {
  readTotals: (span: FleetSpan) => Promise<FleetCounts>
  /** Most devices first. */
  listVersions: (span: FleetSpan & { versionsMax: number }) => Promise<FleetVersion[]>
  /** By time; without a platform and version it is of all of them. */
  listPoints: (span: FleetSpan, by: 'all' | 'platform' | 'version') => Promise<FleetPoint[]>
  /** Devices that were seen for the first time, by time. */
  listNewDevices: (span: FleetSpan) => Promise<{ atMs: number; devices: number }[]>
  /** On how many devices each signal was detected, of all versions and of each of the largest. */
  listSignals: (
    span: FleetSpan & { signalsMax: number; versionsMax: number },
  ) => Promise<FleetSignal[]>
}

/** Below the time limits of clients, so that no abandoned query runs on. */
const queryMaxSeconds = 25

// FINAL counts a redelivered event once.
const selected = `
  from telemetry final
  prewhere tenant_id = {tenant:String}
    and received_at >= fromUnixTimestamp64Milli({from:Int64})
    and received_at < fromUnixTimestamp64Milli({to:Int64})`

const counts = 'count(), uniq(device_id), uniq(device_id, session_id)'

const toAt = (column: string) =>
  `toUnixTimestamp(toStartOfInterval(${column}, toIntervalSecond({step:UInt32}), 'UTC')) * 1000`

const groups = {
  all: "'', ''",
  platform: "platform, ''",
  version: 'platform, sdk_version',
}

export function createFleetStore(clickhouse: Clickhouse): FleetStore {
  const read = async <Row>(
    query: string,
    { tenantId, fromMs, toMs, stepSeconds }: FleetSpan,
    more: Record<string, unknown> = {},
  ): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: { tenant: tenantId, from: fromMs, to: toMs, step: stepSeconds, ...more },
      clickhouse_settings: {
        max_execution_time: queryMaxSeconds,
        max_threads: 2,
        do_not_merge_across_partitions_select_final: 1,
      },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  return {
    readTotals: async (span) => {
      const [row] = await read<[number, number, number]>(`select ${counts} ${selected}`, span)
      return toCounts(row!)
    },
    listVersions: async (span) => {
      const rows = await read<[string, string, number, number, ...[number, number, number]]>(
        `select platform, sdk_version, toUnixTimestamp64Milli(min(received_at)),
           toUnixTimestamp64Milli(max(received_at)), ${counts} ${selected}
         group by platform, sdk_version
         order by uniq(device_id) desc, platform, sdk_version limit {versions:UInt32}`,
        span,
        { versions: span.versionsMax },
      )
      return rows.map(([platform, sdkVersion, firstSeenMs, lastSeenMs, ...own]) => ({
        platform,
        sdkVersion,
        firstSeenMs,
        lastSeenMs,
        ...toCounts(own),
      }))
    },
    listPoints: async (span, by) => {
      const rows = await read<[number, string, string, ...[number, number, number]]>(
        `select ${toAt('received_at')} as at, ${groups[by]}, ${counts} ${selected}
         group by all order by at`,
        span,
      )
      return rows.map(([atMs, platform, sdkVersion, ...own]) => ({
        atMs,
        platform,
        sdkVersion,
        ...toCounts(own),
      }))
    },
    listNewDevices: async (span) => {
      const rows = await read<[number, number]>(
        `select ${toAt('first_seen_at')} as at, count()
         from (
           select min(devices.first_seen_at) as first_seen_at
           from devices where tenant_id = {tenant:String} group by device_id
         )
         where first_seen_at >= fromUnixTimestamp64Milli({from:Int64})
           and first_seen_at < fromUnixTimestamp64Milli({to:Int64})
         group by at order by at`,
        span,
      )
      return rows.map(([atMs, devices]) => ({ atMs, devices }))
    },
    listSignals: async (span) => {
      const rows = await read<[0 | 1, string, string, string, number]>(
        `with largest as (
           select platform, sdk_version ${selected}
           group by platform, sdk_version
           order by uniq(device_id) desc, platform, sdk_version limit {versions:UInt32}
         )
         select of_all, platform, sdk_version, signal, devices from (
           select grouping(platform) as of_all, platform, sdk_version, signal,
             uniq(device_id) as devices
           from (select platform, sdk_version, device_id, detected_signals ${selected})
           array join detected_signals as signal
           group by grouping sets ((signal), (platform, sdk_version, signal))
         )
         where of_all or (platform, sdk_version) in largest
         order by devices desc, signal limit {signals:UInt32}`,
        span,
        { versions: span.versionsMax, signals: span.signalsMax * (span.versionsMax + 1) },
      )
      return rows.map(([ofAll, platform, sdkVersion, signal, devices]) => ({
        platform: ofAll === 1 ? null : platform,
        sdkVersion,
        signal,
        devices,
      }))
    },
  }
}

const toCounts = ([events, devices, sessions]: [number, number, number]): FleetCounts => ({
  events,
  devices,
  sessions,
})
