/**
 * Reads what the overview shows of a tenant's telemetry: a period beside the one before it, from
 * the counts of whole hours and from the events of the rest. Events are exact; devices and sessions
 * are counted by sketches, exact to tens of thousands and within a percent beyond. A query that
 * would read too many rows is refused.
 */
import type { HourlyCoverage } from '#shared/core/analytics/hourly-coverage.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { fleetSignalsMax } from '#shared/core/base/limits/analytics.ts'
import { type Clickhouse, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'
import { type OutcomesAsOf, readOutcomeCounts } from '#shared/io/outcomes/outcome-store.ts'
import { hourlyQuery, toHourlyRows } from './counts/hourly-count-sql.ts'
import { createHourlyReader } from './counts/hourly-reader.ts'

/** The period is `fromMs` to `toMs`; the one before begins at `beforeMs` and ends at `fromMs`. */
export type OverviewSpan = { tenantId: string; beforeMs: number; fromMs: number; toMs: number }

export type PeriodCounts = {
  events: number
  devices: number
  sessions: number
  allow: number
  review: number
  block: number
  /** Events with a measured connection, those over VPN, proxy, relay or Tor, and of data centres. */
  measured: number
  anonymous: number
  hosting: number
  countries: number
}

/** A number in the period, and in the one before. */
export type Pair = { now: number; before: number }

export type OverviewVersion = {
  platform: string
  sdkVersion: string
  events: Pair
  devices: Pair
}

/** A step begins at `atMs`. */
export type OverviewStep = {
  isNow: boolean
  atMs: number
  events: number
  review: number
  block: number
}

export type OverviewCounts = {
  now: PeriodCounts
  before: PeriodCounts
  lastEventMs: number | null
  /** SDK versions of most events first. */
  versions: OverviewVersion[]
  /** The steps with events, of both periods. */
  steps: OverviewStep[]
}

export type OverviewStore = {
  readCounts: (
    span: OverviewSpan,
    options: { versionsMax: number; stepMs: number },
  ) => Promise<OverviewCounts>
  /** Flags of most events first. */
  listFlags: (
    span: OverviewSpan,
    limit: number,
  ) => Promise<{ flag: string; events: Pair; devices: Pair }[]>
  /** Signals with the devices that they were detected on, those of most devices first. */
  listSignals: (span: OverviewSpan) => Promise<{ signal: string; devices: Pair }[]>
  /** Whether the tenant ever sent an event that is kept. */
  hasEvents: (tenantId: string) => Promise<boolean>
  /** Of the sessions that began in the period. */
  readOutcomes: (span: OverviewSpan) => Promise<OutcomesAsOf>
}

/** Rows that one query may read, and how long it may take. */
const rowsReadMax = 500_000_000
const queryMaxSeconds = 25

const isNow = (column: string) => `${column} >= fromUnixTimestamp64Milli({from:Int64})`

const pairs = `sumIf(events, at), sumIf(events, not at), uniqMergeIf(devices, at),
    uniqMergeIf(devices, not at)`

const periodCounts = (when: string) => `sumIf(events, ${when}), uniqMergeIf(devices, ${when}),
    uniqMergeIf(sessions, ${when}), sumIf(events - review - block, ${when}),
    sumIf(review, ${when}), sumIf(block, ${when}), sumIf(measured, ${when}),
    sumIf(anonymous, ${when}), sumIf(hosting, ${when}),
    length(groupUniqArrayArrayIf(countries, ${when}))`
/** How many numbers these are. */
const periodNumbers = 10

/** The step of an instant; below 0 in the period before. */
const toStep = (column: string) => `
  intDiv(toUnixTimestamp64Milli(toDateTime64(${column}, 3, 'UTC')), {step:Int64}) * {step:Int64}
    * if(${isNow(column)}, 1, -1)`

// Everything, each version and each step in one pass. Sketches of each version are merged first,
// and those of the few versions for everything.
const countsSql = (coverage: HourlyCoverage) => `
  select grouping(platform) as of_all, platform, sdk_version,
    toUnixTimestamp64Milli(max(last_at)), ${periodCounts('is_now')},
    ${periodCounts('not is_now')},
    sumMap(step_events), sumMap(step_review), sumMap(step_block)
  from (
    select at > 0 as is_now, platform, sdk_version, max(last_at) as last_at,
      sum(rows.events) as events, sum(rows.review) as review, sum(rows.block) as block,
      sum(rows.measured) as measured, sum(rows.anonymous) as anonymous,
      sum(rows.hosting) as hosting, groupUniqArrayArray(rows.countries) as countries,
      uniqMergeState(rows.devices) as devices, uniqMergeState(rows.sessions) as sessions,
      sumMap(map(at, rows.events)) as step_events, sumMap(map(at, rows.review)) as step_review,
      sumMap(map(at, rows.block)) as step_block
    from (${toHourlyRows('version', coverage, toStep)}) as rows
    group by is_now, platform, sdk_version
  )
  group by grouping sets ((), (platform, sdk_version))
  order by of_all desc, sumIf(events, is_now) desc, platform, sdk_version limit {limit:UInt32}`

const flagsSql = (coverage: HourlyCoverage) => `
  select name, ${pairs} from (${toHourlyRows('flag', coverage, isNow)})
  group by name order by sumIf(events, at) desc, name limit {limit:UInt32}`

const signalsSql = (coverage: HourlyCoverage) => `
  select name, uniqMergeIf(devices, at) as now, uniqMergeIf(devices, not at) as before
  from (${toHourlyRows('signal', coverage, isNow)})
  group by name order by now + before desc, name limit {limit:UInt32}`

type CountsRow = [
  ...[ofAll: 0 | 1, platform: string, sdkVersion: string, lastEventMs: number],
  ...counts: (number | Record<string, number>)[],
]

export function createOverviewStore(clickhouse: Clickhouse): OverviewStore {
  const { readCoverage } = createHourlyReader(clickhouse)
  const read = async <Row>(
    toQuery: (coverage: HourlyCoverage) => string,
    { tenantId, beforeMs, fromMs, toMs }: OverviewSpan,
    // Without steps, a day is read as well as an hour.
    { limit = 0, stepMs = dayMs }: { limit?: number; stepMs?: number } = {},
  ): Promise<Row[]> => {
    const spans = [
      { fromMs: beforeMs, toMs: fromMs },
      { fromMs, toMs },
    ]
    const coverage = await readCoverage(tenantId, spans, stepMs)
    const result = await clickhouse.query({
      query: toQuery(coverage),
      query_params: { tenant: tenantId, from: fromMs, limit, step: stepMs },
      clickhouse_settings: {
        max_rows_to_read: String(rowsReadMax),
        max_execution_time: queryMaxSeconds,
        ...uncompiled,
        ...hourlyQuery,
        do_not_merge_across_partitions_select_final: 1,
      },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  return {
    readCounts: async (span, { versionsMax, stepMs }) => {
      const options = { limit: versionsMax + 1, stepMs }
      const rows = await read<CountsRow>(countsSql, span, options)
      const all = rows.find(([ofAll]) => ofAll === 1)
      return {
        now: toCounts(all, 0),
        before: toCounts(all, 1),
        lastEventMs: all === undefined || all[3] === 0 ? null : all[3],
        versions: rows.filter(([ofAll]) => ofAll === 0).map(toVersion),
        steps: all === undefined ? [] : toSteps(all),
      }
    },
    listFlags: async (span, limit) => {
      const rows = await read<[string, number, number, number, number]>(flagsSql, span, { limit })
      return rows.map(([flag, ...numbers]) => ({ flag, ...toPairs(numbers) }))
    },
    listSignals: async (span) => {
      const limit = fleetSignalsMax
      const rows = await read<[string, number, number]>(signalsSql, span, { limit })
      return rows.map(([signal, now, before]) => ({ signal, devices: { now, before } }))
    },
    hasEvents: async (tenantId) => {
      const result = await clickhouse.query({
        query: 'select 1 from devices where tenant_id = {tenant:String} limit 1',
        query_params: { tenant: tenantId },
        format: 'JSONCompactEachRow',
      })
      return (await result.json()).length > 0
    },
    readOutcomes: ({ tenantId, fromMs, toMs }) =>
      readOutcomeCounts(clickhouse, { tenantId, sinceMs: fromMs, untilMs: toMs }),
  }
}

/** @param period 0 is the period, 1 the one before */
function toCounts(row: CountsRow | undefined, period: 0 | 1): PeriodCounts {
  const counts = row?.slice(4 + periodNumbers * period, 4 + periodNumbers * (period + 1))
  const numbers = (counts as number[] | undefined) ?? Array<number>(periodNumbers).fill(0)
  const [events, devices, sessions, allow, review, block, ...connections] = numbers
  const [measured, anonymous, hosting, countries] = connections
  return {
    events: events!,
    devices: devices!,
    sessions: sessions!,
    allow: allow!,
    review: review!,
    block: block!,
    measured: measured!,
    anonymous: anonymous!,
    hosting: hosting!,
    countries: countries!,
  }
}

function toSteps(row: CountsRow): OverviewStep[] {
  const maps = row.slice(4 + 2 * periodNumbers) as Record<string, number>[]
  const [events, review, block] = maps
  return Object.entries(events!).map(([step, count]) => ({
    isNow: Number(step) > 0,
    atMs: Math.abs(Number(step)),
    events: count,
    review: review![step] ?? 0,
    block: block![step] ?? 0,
  }))
}

function toVersion(row: CountsRow): OverviewVersion {
  const [, platform, sdkVersion] = row
  const [now, before] = [toCounts(row, 0), toCounts(row, 1)]
  return {
    platform,
    sdkVersion,
    events: { now: now.events, before: before.events },
    devices: { now: now.devices, before: before.devices },
  }
}

const toPairs = ([now, before, devicesNow, devicesBefore]: [number, number, number, number]) => ({
  events: { now, before },
  devices: { now: devicesNow, before: devicesBefore },
})
