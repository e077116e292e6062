/**
 * The reference page of the views of fraud teams, written from the comments that the views and
 * their columns carry in the database.
 */

import { formerNames } from '#shared/core/analytics/view-sql.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { type Clickhouse, defaultDatabase } from '#shared/io/clickhouse/clickhouse.ts'

type AnalyticsColumn = { name: string; type: string; comment: string }
type AnalyticsView = { name: string; comment: string; columns: AnalyticsColumn[] }

/** The views by name, their columns in order; also views that take parameters, without columns. */
export async function listDocumentedViews(clickhouse: Clickhouse): Promise<AnalyticsView[]> {
  const database = toAnalyticsDatabase(defaultDatabase)
  const result = await clickhouse.query({
    query: `select name, comment, columns from (
      select name, comment from system.tables where database = {database:String}
    ) as views
    left join (
      select table as name, arrayMap(one -> one.2, arraySort(groupArray(
        (position, (columns.name, type, columns.comment))))) as columns
      from system.columns as columns where database = {database:String} group by table
    ) as described using (name)
    order by name`,
    query_params: { database },
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<[string, string, [string, string, string][]]>()
  return rows.map(([name, comment, columns]) => ({
    name,
    comment,
    columns: columns.map(([column, type, said]) => ({ name: column, type, comment: said })),
  }))
}

const head = `<!-- Made by \`npm run generate\` from the comments of the views: do not edit. -->

# The \`analytics\` database

Views for fraud teams, beside the service's internal tables. Names and types stay; what is new comes
at the end. Beside an internal database of another name than \`device_intelligence\` it is called
\`<name>_analytics\`.

An answer is whole or an error with its status. A million rows or 256 MiB are the most (64 MiB in
the local stack). Beyond that it is a 500 that says so: ask for a part at a time, as by
\`received_at\`.

In \`events\` a signal has the type of each value, so \`avg(signals.x.y)\` is an error. Use
\`typed_events\`, which has a typed column for every signal of the catalog, or cast the signal:
\`signals.x.y::Nullable(Float64)\`. An instant is \`'2026-11-25 14:03:00.000'\` in UTC, or
\`parseDateTime64BestEffort('2026-11-25T14:03:00.000Z', 3)\`.
`

/**
 * The page as Markdown. A view that takes parameters has no columns of its own in the database, and
 * one under a former name has those of the view that it is.
 */
export async function renderAnalyticsPage(clickhouse: Clickhouse): Promise<string> {
  const views = await listDocumentedViews(clickhouse)
  return [head, ...views.map(toSection)].join('\n')
}

function toSection({ name, comment, columns }: AnalyticsView): string {
  const listed = name in formerNames ? [] : columns
  const list = listed.map((one) => `- \`${one.name}\` \`${one.type}\`: ${one.comment}`)
  return [`## ${name}`, '', comment, ...(list.length === 0 ? [] : ['', ...list]), ''].join('\n')
}
