/**
 * The counts of whole hours: which there are, and what a job does to have them. A counting of an
 * hour is a set of rows, in force from when its mark is there, so a crash in between changes
 * nothing. Hours that a mark lacks, or that got rows since, are read from events instead.
 */
import { type HourlyMarks, isCounted } from '#shared/core/analytics/hourly-coverage.ts'
import { hourMs, type Span } from '#shared/core/base/instants.ts'
import { hourlyNamesMax, hourlyQuietMs } from '#shared/core/base/limits/analytics.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import { readMergedDays } from './daily-count-store.ts'
import { countSettings, hourlyColumns, hourlySubjects, toRowsOfEvents } from './hourly-count-sql.ts'

/** All hours of a tenant, or of all tenants: null. */
export type HourlyScope = string | null

export type HourlyCountStore = {
  /** @param span whole hours around a period */
  readMarks: (tenantId: string, span: Span) => Promise<HourlyMarks>
  /** Hours from the first stored event on that no counting of all tenants has, and now. */
  findUncounted: (from: number) => Promise<{ hours: number[]; now: number }>
  /** Whether everything received in a span is decided, so that a counting is final. */
  isDecided: (span: Span) => Promise<boolean>
  /**
   * Counts the hours of a span and puts the counting in force.
   * @returns when it began
   */
  count: (scope: HourlyScope, span: Span) => Promise<number>
  /** Tenants with hours to count again, once a minute without an insert has passed. */
  listStale: (from: number, now: number) => Promise<{ tenantId: string; hours: number[] }[]>
  /** Removes the rows of countings of a tenant that began before an instant. */
  removeEarlier: (tenantId: string, span: Span, countedAt: number) => Promise<void>
}

/** The lease of a round of counting. */
export const hourlyCountLease = 'hourly counts'

/** The stream keeps events for 72 hours, so no hour before gets any by itself. */
const lateHours = 80

export function createHourlyCountStore(clickhouse: Clickhouse): HourlyCountStore {
  const read = async <Row>(query: string, params: Record<string, unknown>): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: params,
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  const readMarks: HourlyCountStore['readMarks'] = async (tenantId, span) => {
    const params = { tenant: tenantId, from: span.fromMs / 1_000, to: span.toMs / 1_000 }
    const [marked, inserted, mergedAt] = await Promise.all([
      read<[hour: number, countedAt: number, now: number]>(marksSql, params),
      read<[hour: number, insertedAt: number]>(insertedSql, params),
      readMergedDays(clickhouse, tenantId, span),
    ])
    return {
      countedAt: new Map(marked.map(([hour, countedAt]) => [hour * 1_000, countedAt])),
      insertedAt: new Map(inserted.map(([hour, at]) => [hour * 1_000, at * 1_000])),
      mergedAt,
      forgottenAt: marked.find(([hour]) => hour === 0)?.[1] ?? 0,
      now: marked[0]?.[2] ?? 0,
    }
  }
  return {
    readMarks,
    findUncounted: async (from) => {
      const [[first, now]] = (await read<[number, number]>(
        `select if(count() = 0, 0, toUnixTimestamp(toStartOfHour(min(received_at)))),
           toUnixTimestamp64Milli(now64(3))
         from telemetry`,
        {},
      )) as [[number, number]]
      const rows = await read<[number]>(
        `select toUnixTimestamp(hour) from hourly_marks
         where tenant_id = '' and hour >= toDateTime({from:UInt32}, 'UTC') group by hour`,
        { from: from / 1_000 },
      )
      const counted = new Set(rows.map(([hour]) => hour * 1_000))
      const hours: number[] = []
      const start = first === 0 ? now : Math.max(first * 1_000, from)
      for (let hour = start; hour + hourMs <= now; hour += hourMs) {
        if (!counted.has(hour)) hours.push(hour)
      }
      return { hours, now }
    },
    isDecided: async ({ fromMs, toMs }) => {
      const [row] = await read<[number]>(undecidedSql, { from: fromMs, to: toMs })
      return row![0] === 0
    },
    count: async (scope, span) => {
      const [[at]] = (await read<[number]>('select toUnixTimestamp64Milli(now64(3))', {})) as [
        [number],
      ]
      const inTenant = scope === null ? "tenant_id != ''" : 'tenant_id = {tenant:String}'
      const counted = {
        inTenant,
        spans: [span],
        toAt: (column: string) => `toStartOfHour(${column})`,
      }
      for (const subject of hourlySubjects) {
        const columns = hourlyColumns[subject].join(', ')
        await clickhouse.command({
          query: `insert into hourly_counts (tenant_id, subject, hour, counted_at, ${columns})
            select tenant_id, '${subject}', at, fromUnixTimestamp64Milli({at:Int64}, 'UTC'), ${columns}
            from (${toRowsOfEvents(subject, counted)})
            ${subject === 'version' ? '' : `order by events desc limit ${hourlyNamesMax} by tenant_id, at`}`,
          query_params: { tenant: scope ?? '', at },
          clickhouse_settings: { ...countSettings, do_not_merge_across_partitions_select_final: 1 },
        })
      }
      const hours = (span.toMs - span.fromMs) / hourMs
      await clickhouse.command({
        query: `insert into hourly_marks (tenant_id, hour, counted_at)
          select {tenant:String}, toDateTime({from:UInt32} + 3600 * number, 'UTC'),
            fromUnixTimestamp64Milli({at:Int64}, 'UTC')
          from numbers({hours:UInt32})`,
        query_params: { tenant: scope ?? '', from: span.fromMs / 1_000, at, hours },
      })
      return at
    },
    listStale: async (from, now) => {
      const late = await read<[string]>(lateSql, { quiet: hourlyQuietMs / 1_000 })
      const forgotten = await read<[string]>(forgottenSql, { from: from / 1_000 })
      const tenants = new Set([...late, ...forgotten].map(([tenantId]) => tenantId))
      const stale: { tenantId: string; hours: number[] }[] = []
      for (const tenantId of tenants) {
        const toMs = Math.ceil(now / hourMs) * hourMs
        const marks = await readMarks(tenantId, { fromMs: from, toMs })
        const isDue = (hour: number) =>
          hour >= from &&
          !isCounted(hour, marks) &&
          (marks.insertedAt.get(hour) ?? 0) + hourlyQuietMs + 1_000 < marks.now
        const hours = [...marks.countedAt.keys()].filter(isDue).sort((a, b) => a - b)
        if (hours.length > 0) stale.push({ tenantId, hours })
      }
      return stale
    },
    removeEarlier: async (tenantId, { fromMs, toMs }, countedAt) => {
      await onEveryNode(clickhouse, (node) =>
        node.command({
          query: `alter table hourly_counts delete where tenant_id = {tenant:String} and ${inHours}
            and counted_at < fromUnixTimestamp64Milli({at:Int64}, 'UTC')`,
          query_params: {
            tenant: tenantId,
            from: fromMs / 1_000,
            to: toMs / 1_000,
            at: countedAt,
          },
        }),
      )
    },
  }
}

const inHours = `hour >= toDateTime({from:UInt32}, 'UTC') and hour < toDateTime({to:UInt32}, 'UTC')`

/** Of tenants whose hours got rows after they were counted, or just before. */
const lateSql = `
  select distinct tenant_id from sdk_baselines
  inner join (
    select hour, max(counted_at) as counted from hourly_marks where tenant_id = '' group by hour
  ) as marked using (hour)
  where hour >= now('UTC') - interval ${lateHours} hour
    and inserted_at + toIntervalSecond({quiet:UInt32}) >= marked.counted`

/** Of tenants with fewer countings since they were forgotten than hours that were counted before. */
const forgottenSql = `
  select tenant_id
  from (
    select tenant_id, maxIf(at, hour = toDateTime(0, 'UTC')) as forgotten,
      groupArrayIf(at, hour >= toDateTime({from:UInt32}, 'UTC')) as own
    from (
      select tenant_id, hour, max(counted_at) as at from hourly_marks
      where tenant_id != '' group by tenant_id, hour
    )
    group by tenant_id
  )
  where forgotten > toDateTime64(0, 3, 'UTC')
    and arrayCount(at -> at > forgotten, own) < arrayCount(at -> at <= forgotten, (
      select groupArray(at) from (
        select max(counted_at) as at from hourly_marks
        where tenant_id = '' and hour >= toDateTime({from:UInt32}, 'UTC') group by hour
      )
    ))`

const marksSql = `
  select toUnixTimestamp(hour), toUnixTimestamp64Milli(max(counted_at)),
    toUnixTimestamp64Milli(now64(3))
  from hourly_marks
  where tenant_id in ('', {tenant:String}) and (hour = toDateTime(0, 'UTC') or ${inHours})
  group by hour`

const insertedSql = `
  select toUnixTimestamp(hour), toUnixTimestamp(max(inserted_at))
  from sdk_baselines where tenant_id = {tenant:String} and ${inHours}
  group by hour`

// An event of a simulated history has no place in a stream.
const undecidedSql = `
  select count() from (
    select stream, max(stream_offset) as last from telemetry
    where received_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
      and received_at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')
    group by stream
  ) as stored
  left join (
    select stream, argMax(stream_offset, at) as end from reconciliation_watermarks group by stream
  ) as decided using (stream)
  where stored.last > 0 and stored.last >= decided.end`

/**
 * Has everything that was counted of a tenant not hold any more, and removes it: after an erasure,
 * and after rows were written that are older than what scorers store. The job counts it again. Days
 * do not hold either, as they have hours that do not.
 */
export async function forgetHourlyCounts(clickhouse: Clickhouse, tenantId: string): Promise<void> {
  await clickhouse.command({
    query: `insert into hourly_marks (tenant_id, hour, counted_at)
      select {tenant:String}, toDateTime(0, 'UTC'), now64(3)`,
    query_params: { tenant: tenantId },
  })
  for (const table of ['hourly_counts', 'daily_counts']) {
    await onEveryNode(clickhouse, (node) =>
      node.command({
        query: `alter table ${table} delete where tenant_id = {tenant:String}`,
        query_params: { tenant: tenantId },
        clickhouse_settings: { mutations_sync: '2' },
      }),
    )
  }
}
