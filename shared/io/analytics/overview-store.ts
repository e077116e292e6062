/**
 * Reads what the overview shows of a tenant's telemetry: a period beside the one before it, from
 * one pass over both. Events are exact; devices and sessions are counted by sketches, exact to tens
 * of thousands and within a percent beyond. A query that would read too many rows is refused.
 */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** The period is `fromMs` to `toMs`; the one before begins at `beforeMs` and ends at `fromMs`. */
export type OverviewSpan = { tenantId: string; beforeMs: number; fromMs: number; toMs: number }

export type PeriodCounts = {
  events: number
  devices: number
  sessions: number
  allow: number
  review: number
  block: number
}

/** A number in the period, and in the one before. */
export type Pair = { now: number; before: number }

export type OverviewStore = {
  readCounts: (
    span: OverviewSpan,
  ) => Promise<{ now: PeriodCounts; before: PeriodCounts; lastEventMs: number | null }>
  /** Flags of most events first. */
  listFlags: (
    span: OverviewSpan,
    limit: number,
  ) => Promise<{ flag: string; events: Pair; devices: Pair }[]>
  /** SDK versions of most events first. */
  listVersions: (
    span: OverviewSpan,
    limit: number,
  ) => Promise<{ platform: string; sdkVersion: string; events: Pair; devices: Pair }[]>
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

const countsSql = `
  select ${isNow} as now, count(), uniq(device_id), uniq(device_id, session_id),
    countIf(rasp_action = 'ALLOW'), countIf(rasp_action = 'REVIEW'),
    countIf(rasp_action = 'BLOCK'), toUnixTimestamp64Milli(max(received_at))
  ${selected} group by now`

const pairs = `countIf(${isNow}), countIf(not ${isNow}), uniqIf(device_id, ${isNow}),
    uniqIf(device_id, not ${isNow})`

const flagsSql = `
  select flag, ${pairs} from (select flags, device_id, received_at ${selected})
  array join flags as flag
  group by flag order by countIf(${isNow}) desc, flag limit {limit:UInt32}`

const versionsSql = `
  select platform, sdk_version, ${pairs} ${selected}
  group by platform, sdk_version
  order by countIf(${isNow}) desc, platform, sdk_version limit {limit:UInt32}`

type CountsRow = [0 | 1, number, number, number, number, number, number, number]

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
    readCounts: async (span) => {
      const rows = await read<CountsRow>(countsSql, span)
      const of = (now: 0 | 1) => toCounts(rows.find((row) => Number(row[0]) === now))
      const lastEventMs = rows.reduce<number | null>(
        (last, row) => Math.max(last ?? 0, row[7]),
        null,
      )
      return { now: of(1), before: of(0), lastEventMs }
    },
    listFlags: async (span, limit) => {
      const rows = await read<[string, number, number, number, number]>(flagsSql, span, limit)
      return rows.map(([flag, ...numbers]) => ({ flag, ...toPairs(numbers) }))
    },
    listVersions: async (span, limit) => {
      const rows = await read<[string, string, number, number, number, number]>(
        versionsSql,
        span,
        limit,
      )
      return rows.map(([platform, sdkVersion, ...numbers]) => ({
        platform,
        sdkVersion,
        ...toPairs(numbers),
      }))
    },
  }
}

function toCounts(row: CountsRow | undefined): PeriodCounts {
  const [, events, devices, sessions, allow, review, block] = row ?? [0, 0, 0, 0, 0, 0, 0, 0]
  return { events, devices, sessions, allow, review, block }
}

const toPairs = ([now, before, devicesNow, devicesBefore]: [number, number, number, number]) => ({
  events: { now, before },
  devices: { now: devicesNow, before: devicesBefore },
})
