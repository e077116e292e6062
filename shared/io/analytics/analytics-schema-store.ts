/** Reads the analytics views with their columns and comments: the schema, and no row of a tenant. */
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

export type AnalyticsView = {
  name: string
  comment: string
  columns: { name: string; type: string; comment: string }[]
}

/** All views by name, each with its columns in their order. */
export async function listAnalyticsViews(
  clickhouse: Clickhouse,
  database: string,
): Promise<AnalyticsView[]> {
  const result = await clickhouse.query({
    query: `
      select view, comment, columns from (
        select
          table as view,
          arrayMap(
            one -> (one.2, one.3, one.4),
            arraySort(groupArray((position, name, type, comment)))
          ) as columns
        from system.columns where database = {database:String} group by table
      ) as listed
      join (
        select name as view, comment from system.tables where database = {database:String}
      ) as tables using (view)
      order by view`,
    query_params: { database },
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<[string, string, [string, string, string][]]>()
  return rows.map(([view, comment, columns]) => ({
    name: view,
    comment,
    columns: columns.map(([column, type, text]) => ({ name: column, type, comment: text })),
  }))
}
