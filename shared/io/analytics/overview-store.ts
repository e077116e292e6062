/**
 * Reads what the overview shows of a tenant's telemetry: a period beside the one before it, from
 * the counts of whole hours and from the events of the rest. Events are exact; devices and sessions
 * are counted by sketches, exact to tens of thousands and within a percent beyond. A query that
 * would read too many rows is refused.
 */
import type { HourlyCoverage } from '#shared/core/analytics/hourly-coverage.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type OutcomesAsOf, readOutcomeCounts } from '#shared/io/outcomes/outcome-store.ts'
import { toHourlyRows } from './hourly-count-sql.ts'
import { createHourlyReader } from './hourly-reader.ts'

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

export type OverviewCounts = {
  now: PeriodCounts
  before: PeriodCounts
  lastEventMs: number | null
  /** SDK versions of most events first. */
  versions: OverviewVersion[]
}

export type OverviewStore = {
  readCounts: (span: OverviewSpan, versionsMax: number) => Promise<OverviewCounts>
  /** Flags of most events first. */
  listFlags: (
    span: OverviewSpan,
    limit: number,
  ) => Promise<{ flag: string; events: Pair; devices: Pair }[]>
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

// Everything and each version in one pass. Sketches of each version are merged for everything.
const countsSql = (coverage: HourlyCoverage) => `
  select grouping(platform) as of_all, platform, sdk_version,
    toUnixTimestamp64Milli(max(last_at)), ${periodCounts('at')},
    ${periodCounts('not at')}
  from (${toHourlyRows('version', coverage, isNow)})
  group by grouping sets ((), (platform, sdk_version))
  order by of_all desc, sumIf(events, at) desc, platform, sdk_version limit {limit:UInt32}`

const flagsSql = (coverage: HourlyCoverage) => `
  select name, ${pairs} from (${toHourlyRows('flag', coverage, isNow)})
  group by name order by sumIf(events, at) desc, name limit {limit:UInt32}`

type CountsRow = [
  ...[ofAll: 0 | 1, platform: string, sdkVersion: string, lastEventMs: number],
  ...counts: number[],
]

export function createOverviewStore(clickhouse: Clickhouse): OverviewStore {
  const { readCoverage } = createHourlyReader(clickhouse)
  const read = async <Row>(
    toQuery: (coverage: HourlyCoverage) => string,
    { tenantId, beforeMs, fromMs, toMs }: OverviewSpan,
    limit = 0,
  ): Promise<Row[]> => {
    const spans = [
      { fromMs: beforeMs, toMs: fromMs },
      { fromMs, toMs },
    ]
    const result = await clickhouse.query({
      query: toQuery(await readCoverage(tenantId, spans)),
      query_params: { tenant: tenantId, from: fromMs, limit },
      clickhouse_settings: {
        max_rows_to_read: String(rowsReadMax),
        max_execution_time: queryMaxSeconds,
        max_threads: 2,
        do_not_merge_across_partitions_select_final: 1,
      },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  return {
    readCounts: async (span, versionsMax) => {
      const rows = await read<CountsRow>(countsSql, span, versionsMax + 1)
      const all = rows.find(([ofAll]) => ofAll === 1)
      return {
        now: toCounts(all, 0),
        before: toCounts(all, 1),
        lastEventMs: all === undefined || all[3] === 0 ? null : all[3],
        versions: rows.filter(([ofAll]) => ofAll === 0).map(toVersion),
      }
    },
    listFlags: async (span, limit) => {
      const rows = await read<[string, number, number, number, number]>(flagsSql, span, limit)
      return rows.map(([flag, ...numbers]) => ({ flag, ...toPairs(numbers) }))
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
