/**
 * The counts of whole days, merged from those of their hours. A merging is in force from when its
 * mark is there, so a crash in between changes nothing, and only while no hour of the day was
 * counted later: a late event or an erasure has the hours counted again, and then the day merged
 * again.
 */
import { dayMs, type Span } from '#shared/core/base/instants.ts'
import { hourlyNamesMax } from '#shared/core/base/limits/analytics.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import {
  countSettings,
  hourlyColumns,
  hourlyQuery,
  hourlySubjects,
  pointColumns,
  toPointsOfDay,
  toRowsOfDay,
} from './hourly-count-sql.ts'

export type DailyCountStore = {
  /** Days of which all hours are counted of all tenants, and one later than the day was merged. */
  findUnmerged: (from: number) => Promise<number[]>
  /** Tenants with hours of their own that were counted later than the day was merged. */
  listStale: (from: number) => Promise<{ tenantId: string; days: number[] }[]>
  /**
   * Merges the hours of a day that are in force, of one tenant or of all: null. Call it once all
   * of them are counted.
   * @returns when it began
   */
  merge: (scope: string | null, day: number) => Promise<number>
  /** Removes the rows of mergings of a tenant that began before an instant. */
  removeEarlier: (tenantId: string, day: number, mergedAt: number) => Promise<void>
}

export function createDailyCountStore(clickhouse: Clickhouse): DailyCountStore {
  const read = async <Row>(query: string, params: Record<string, unknown>): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: params,
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  return {
    findUnmerged: async (from) => {
      const rows = await read<[number]>(unmergedSql, { from: from / 1_000 })
      return rows.map(([day]) => day * 1_000)
    },
    listStale: async (from) => {
      const rows = await read<[string, number[]]>(staleSql, { from: from / 1_000 })
      return rows.map(([tenantId, days]) => ({ tenantId, days: days.map((day) => day * 1_000) }))
    },
    merge: async (scope, day) => {
      const [[at]] = (await read<[number]>('select toUnixTimestamp64Milli(now64(3))', {})) as [
        [number],
      ]
      const params = { tenant: scope ?? '', at, day: day / 1_000 }
      const insert = async (subject: string, columns: readonly string[], rows: string) => {
        await clickhouse.command({
          query: `insert into daily_counts (tenant_id, subject, day, counted_at, ${columns.join(', ')})
            select tenant_id, '${subject}', toDateTime({day:UInt32}, 'UTC'),
              fromUnixTimestamp64Milli({at:Int64}, 'UTC'), ${columns.join(', ')}
            from (${rows})
            ${subject === 'version' ? '' : `order by events desc limit ${hourlyNamesMax} by tenant_id`}`,
          query_params: params,
          clickhouse_settings: countSettings,
        })
      }
      for (const subject of hourlySubjects) {
        await insert(subject, hourlyColumns[subject], toRowsOfDay(subject, inDay))
      }
      await insert('point', pointColumns, toPointsOfDay(inDay))
      await clickhouse.command({
        query: `insert into daily_marks (tenant_id, day, counted_at)
          select {tenant:String}, toDateTime({day:UInt32}, 'UTC'),
            fromUnixTimestamp64Milli({at:Int64}, 'UTC')`,
        query_params: params,
      })
      return at
    },
    removeEarlier: async (tenantId, day, mergedAt) => {
      await onEveryNode(clickhouse, (node) =>
        node.command({
          query: `alter table daily_counts delete where tenant_id = {tenant:String}
            and day = toDateTime({day:UInt32}, 'UTC')
            and counted_at < fromUnixTimestamp64Milli({at:Int64}, 'UTC')`,
          query_params: { tenant: tenantId, day: day / 1_000, at: mergedAt },
        }),
      )
    },
  }
}

/**
 * By day, when the merging in force began. Retention removes the rows of a day before the rows of
 * its later hours: a day without rows is read from its hours, which costs nothing where it is
 * empty.
 */
export async function readMergedDays(
  clickhouse: Clickhouse,
  tenantId: string,
  { fromMs, toMs }: Span,
): Promise<Map<number, number>> {
  const result = await clickhouse.query({
    query: mergedSql,
    query_params: { tenant: tenantId, from: fromMs / 1_000, to: toMs / 1_000 },
    clickhouse_settings: hourlyQuery,
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<[day: number, mergedAt: number]>()
  return new Map(rows.map(([day, mergedAt]) => [day * 1_000, mergedAt]))
}

const inDay = `hour >= toDateTime({day:UInt32}, 'UTC')
  and hour < toDateTime({day:UInt32} + ${dayMs / 1_000}, 'UTC')`

const mergedSql = `
  select toUnixTimestamp(day), toUnixTimestamp64Milli(max(counted_at))
  from daily_counts
  where tenant_id = {tenant:String} and subject = 'version'
    and day >= toDateTime({from:UInt32}, 'UTC') and day < toDateTime({to:UInt32}, 'UTC')
    and (day, counted_at) in (
      select day, max(counted_at) from daily_marks
      where tenant_id in ('', {tenant:String})
        and day >= toDateTime({from:UInt32}, 'UTC') and day < toDateTime({to:UInt32}, 'UTC')
      group by day
    )
  group by day`

/** The days of which every hour is counted of all tenants, and when the last of them was. */
const wholeDays = `
  select toStartOfDay(hour) as day, max(at) as hours_at
  from (
    select hour, max(counted_at) as at from hourly_marks
    where tenant_id = '' and hour >= toDateTime({from:UInt32}, 'UTC') group by hour
  )
  group by day having count() = 24`

const mergedOfAll = `
  select day, max(counted_at) as merged_at from daily_marks where tenant_id = '' group by day`

// The latest first: a page shows them most.
const unmergedSql = `
  select toUnixTimestamp(day)
  from (${wholeDays}) as hours left join (${mergedOfAll}) as merged using (day)
  where hours_at >= merged_at order by day desc`

const staleSql = `
  select tenant_id, groupArray(toUnixTimestamp(day))
  from (
    select tenant_id, toStartOfDay(hour) as day, max(counted_at) as own_at from hourly_marks
    where tenant_id != '' and hour >= toDateTime({from:UInt32}, 'UTC') group by tenant_id, day
  ) as own
  inner join (${wholeDays}) as whole using (day)
  left join (${mergedOfAll}) as merged using (day)
  left join (
    select tenant_id, day, max(counted_at) as own_merged_at from daily_marks
    where tenant_id != '' group by tenant_id, day
  ) as own_merged using (tenant_id, day)
  where own_at >= greatest(merged_at, own_merged_at)
  group by tenant_id`
