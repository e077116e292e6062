/**
 * Reads what the overview shows of a tenant's telemetry: a period beside the one before it, from
 * one pass over both. Events are exact; devices and sessions are counted by sketches, exact to tens
 * of thousands and within a percent beyond. A query that would read too many rows is refused.
 */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type OutcomesAsOf, readOutcomeCounts } from '#shared/io/outcomes/outcome-store.ts'

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

// FINAL counts a redelivered event once.
const selected = `
  from telemetry final
  prewhere tenant_id = {tenant:String}
    and received_at >= fromUnixTimestamp64Milli({before:Int64})
    and received_at < fromUnixTimestamp64Milli({to:Int64})`
const isNow = 'received_at >= fromUnixTimestamp64Milli({from:Int64})'

const pairs = `countIf(${isNow}), countIf(not ${isNow}), uniqIf(device_id, ${isNow}),
    uniqIf(device_id, not ${isNow})`

const periodCounts = (when: string) => `sumIf(events, ${when}), uniqMergeIf(devices, ${when}),
    uniqMergeIf(sessions, ${when}), sumIf(allow, ${when}), sumIf(review, ${when}),
    sumIf(block, ${when}), sumIf(measured, ${when}), sumIf(anonymous, ${when}),
    sumIf(hosting, ${when}), uniqExactMergeIf(countries, ${when})`
/** How many numbers these are. */
const periodNumbers = 10

// Everything and each version in one pass: reading the rows is most of the cost. Sketches of each
// version are merged for everything.
const countsSql = `
  select grouping(platform) as of_all, platform, sdk_version,
    toUnixTimestamp64Milli(max(last_event_at)), ${periodCounts('is_now')},
    ${periodCounts('not is_now')}
  from (
    select ${isNow} as is_now, platform, sdk_version, max(received_at) as last_event_at,
      count() as events, uniqState(device_id) as devices,
      uniqState(device_id, session_id) as sessions, countIf(rasp_action = 'ALLOW') as allow,
      countIf(rasp_action = 'REVIEW') as review, countIf(rasp_action = 'BLOCK') as block,
      countIf(connection_network != '') as measured,
      countIf(hasAny(connection_kinds, ['vpn', 'proxy', 'relay', 'tor'])) as anonymous,
      countIf(has(connection_kinds, 'hosting')) as hosting,
      uniqExactStateIf(connection_country, connection_country != '') as countries
    ${selected}
    group by is_now, platform, sdk_version
  )
  group by grouping sets ((), (platform, sdk_version))
  order by of_all desc, sumIf(events, is_now) desc, platform, sdk_version limit {limit:UInt32}`

const flagsSql = `
  select flag, ${pairs} from (select flags, device_id, received_at ${selected})
  array join flags as flag
  group by flag order by countIf(${isNow}) desc, flag limit {limit:UInt32}`

type CountsRow = [
  ...[ofAll: 0 | 1, platform: string, sdkVersion: string, lastEventMs: number],
  ...counts: number[],
]

export function createOverviewStore(clickhouse: Clickhouse): OverviewStore {
  const read = async <Row>(query: string, span: OverviewSpan, limit = 0): Promise<Row[]> => {
    const { tenantId, beforeMs, fromMs, toMs } = span
    const result = await clickhouse.query({
      query,
      query_params: { tenant: tenantId, before: beforeMs, from: fromMs, to: toMs, limit },
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
