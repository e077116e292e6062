/**
 * Reads a tenant's fleet over time: events, devices and sessions by SDK version and platform, and
 * on how many devices each signal was detected, by the client or by the service: from the counts of
 * whole hours, and from the events of the rest. Events are exact;
 * devices and sessions are counted by sketches, exact to tens of thousands and within a percent
 * beyond.
 */
import type { HourlyCoverage } from '#shared/core/analytics/hourly-coverage.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { fleetPointsMax } from '#shared/core/base/limits/analytics.ts'
import { type Clickhouse, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'
import { countsInForce, hourlyQuery, toHourlyRows } from './counts/hourly-count-sql.ts'
import { createHourlyReader } from './counts/hourly-reader.ts'

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
  /** All counts of the span, in one pass over its events. */
  readCounts: (span: FleetSpan) => Promise<FleetCountsRead>
  /** Devices that were seen for the first time, by time. */
  listNewDevices: (span: FleetSpan) => Promise<{ atMs: number; devices: number }[]>
  /** On how many devices each signal was detected, of all versions and of each of the given. */
  listSignals: (
    span: FleetSpan & {
      signalsMax: number
      versions: readonly { platform: string; sdkVersion: string }[]
    },
  ) => Promise<FleetSignal[]>
}

/** Every list has most devices first, at most `fleetPointsMax`. */
export type FleetCountsRead = {
  totals: FleetCounts
  versions: FleetVersion[]
  /** Points in time: of everything, and of each platform and each version. */
  all: FleetPoint[]
  byPlatform: FleetPoint[]
  byVersion: FleetPoint[]
}

/** Below the time limits of clients, so that no abandoned query runs on. */
const queryMaxSeconds = 25

const toAt = (column: string) =>
  `toUnixTimestamp(toStartOfInterval(${column}, toIntervalSecond({step:UInt32}), 'UTC')) * 1000`
/** Whole days are points already; here they are together in one that is not shown. */
const toAtOfRest = (column: string) => (column === 'day' ? 'toUInt64(0)' : toAt(column))

/** The bits of `grouping`: a column that a row is not about has 1. */
const levels = { totals: 7, versions: 4, all: 3, byPlatform: 1, byVersion: 0 }

// Sketches of the finest level are merged for the others, which takes half the time of counting
// each level by itself (`bench -- console`).
const countsSql = (coverage: HourlyCoverage) => `
  select grouping(at, platform, sdk_version) as level, at, platform, sdk_version,
    toUnixTimestamp64Milli(min(first_at)), toUnixTimestamp64Milli(max(last_at)),
    sum(events), uniqMerge(devices) as device_count, uniqMerge(sessions)
  from (
    select at, platform, sdk_version, min(first_at) as first_at, max(last_at) as last_at,
      sum(events) as events, uniqMergeState(devices) as devices,
      uniqMergeState(sessions) as sessions
    from (${toHourlyRows('version', coverage, toAtOfRest)})
    group by at, platform, sdk_version
  )
  group by grouping sets
    ((), (platform, sdk_version), (at), (at, platform), (at, platform, sdk_version))
  order by device_count desc, at, platform, sdk_version
  limit ${fleetPointsMax} by level`

/** In the order of the columns and levels above. */
const pointsSql = ({ days }: HourlyCoverage) => `
  select caseWithExpression(name, 'all', ${levels.all}, 'platform', ${levels.byPlatform},
      ${levels.byVersion}) as level,
    toUnixTimestamp(day) * 1000, platform, sdk_version, 0, 0, events, device_count, session_count
  ${countsInForce('day', 'point', days)}
  order by device_count desc, day, platform, sdk_version limit ${fleetPointsMax} by level`

const signalsSql = (coverage: HourlyCoverage) => `
  select grouping(platform) as of_all, platform, sdk_version, name, uniqMerge(devices) as found
  from (${toHourlyRows('signal', coverage, toAt)})
  group by grouping sets ((name), (platform, sdk_version, name))
  having of_all or has(arrayZip({platforms:Array(String)}, {versions:Array(String)}),
    (toString(platform), toString(sdk_version)))
  order by found desc, name, of_all, platform, sdk_version limit {signals:UInt32}`

type CountsRow = [
  ...[level: number, atMs: number, platform: string, sdkVersion: string],
  ...[firstSeenMs: number, lastSeenMs: number],
  ...[events: number, devices: number, sessions: number],
]

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
        ...uncompiled,
        ...hourlyQuery,
        do_not_merge_across_partitions_select_final: 1,
      },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  const { readCoverage } = createHourlyReader(clickhouse)
  const coverageOf = ({ tenantId, fromMs, toMs, stepSeconds }: FleetSpan) =>
    readCoverage(tenantId, [{ fromMs, toMs }], stepSeconds * 1_000)
  return {
    readCounts: async (span) => {
      const coverage = await coverageOf(span)
      const [rest, points] = await Promise.all([
        read<CountsRow>(countsSql(coverage), span),
        coverage.days.length === 0 ? [] : read<CountsRow>(pointsSql(coverage), span),
      ])
      const isShown = ([level, atMs]: CountsRow) =>
        level === levels.totals || level === levels.versions || atMs !== 0
      const rows = [...rest.filter(isShown), ...points].sort(byDevices)
      const of = (level: number) => rows.filter((row) => row[0] === level)
      const toPoints = (level: number) => of(level).slice(0, fleetPointsMax).map(toPoint)
      const [totals] = of(levels.totals).map(toCounts)
      return {
        totals: totals ?? { events: 0, devices: 0, sessions: 0 },
        versions: of(levels.versions).map(toVersion),
        all: toPoints(levels.all),
        byPlatform: toPoints(levels.byPlatform),
        byVersion: toPoints(levels.byVersion),
      }
    },
    listNewDevices: async (span) => {
      const rows = await read<[number, number]>(
        `select ${toAt('first_seen_at')} as at, count()
         from (
           select min(devices.first_seen_at) as first_seen_at
           from devices where tenant_id = {tenant:String} group by device_id
           settings optimize_aggregation_in_order = 1
         )
         where first_seen_at >= fromUnixTimestamp64Milli({from:Int64})
           and first_seen_at < fromUnixTimestamp64Milli({to:Int64})
         group by at order by at`,
        span,
      )
      return rows.map(([atMs, devices]) => ({ atMs, devices }))
    },
    listSignals: async ({ versions, signalsMax, ...span }) => {
      const rows = await read<[0 | 1, string, string, string, number]>(
        signalsSql(await coverageOf({ ...span, stepSeconds: dayMs / 1_000 })),
        span,
        {
          platforms: versions.map(({ platform }) => platform),
          versions: versions.map(({ sdkVersion }) => sdkVersion),
          signals: signalsMax * (versions.length + 1),
        },
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

/** As the query orders them. */
const byDevices = (a: CountsRow, b: CountsRow): number =>
  b[7] - a[7] || a[1] - b[1] || compareTexts(a[2], b[2]) || compareTexts(a[3], b[3])

const compareTexts = (a: string, b: string): number => Number(a > b) - Number(a < b)

const toCounts = (row: CountsRow): FleetCounts => ({
  events: row[6],
  devices: row[7],
  sessions: row[8],
})

function toPoint(row: CountsRow): FleetPoint {
  const [, atMs, platform, sdkVersion] = row
  return { atMs, platform, sdkVersion, ...toCounts(row) }
}

function toVersion(row: CountsRow): FleetVersion {
  const [, , platform, sdkVersion, firstSeenMs, lastSeenMs] = row
  return { platform, sdkVersion, firstSeenMs, lastSeenMs, ...toCounts(row) }
}
