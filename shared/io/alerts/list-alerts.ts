/**
 * Listing alerts: a page and its exact total from one statement, so from one snapshot. What
 * counters and ordered indexes answer is in counted-alerts-sql.ts, every other filter in
 * filtered-alerts-sql.ts.
 */
import { hash } from 'node:crypto'
import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import type { AlertFilter, CountedBy } from '#shared/core/alerts/alert-filters.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { alertValuesMax } from '#shared/core/base/limits/alerts.ts'
import { alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import type { Queryable, Sql } from '#shared/io/postgres/postgres.ts'
import { type AlertPosition, type AlertQuery, newestFirst, toBounds } from './alert-query.ts'
import { toCountedSql } from './counted-alerts-sql.ts'
import { isOfCounters, toFilteredSql, toMatchingSql, toPageBySeq } from './filtered-alerts-sql.ts'

export type UncountedPage = {
  /** Newest first: by `created_at`, then `alert_id`, both descending; or ascending by `seq`. */
  alerts: Alert[]
  /** What `after` is for the next page, or null when this one is the last. */
  next: AlertPosition | null
}

/** `total`: how many alerts match the filters, wherever the page begins. */
export type AlertPage = UncountedPage & { total: number }

/**
 * Settings of sessions that list alerts. Every list is a few ranges of indexes for any values, so
 * it is planned once. Without these settings the planner replans some lists, which costs more than
 * a page.
 */
export const listingSession = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
} as const

/** Reads one page. @throws PostgresUnavailableError */
export async function listAlerts(postgres: Queryable, query: AlertQuery): Promise<AlertPage> {
  const { rows } = await postgres.query<{ total: number } & (AlertRow | { alert_id: null })>(
    toListSql(query),
  )
  const found = rows.filter((row) => row.alert_id !== null)
  return { ...toPage(found, query.limit), total: rows[0]?.total ?? 0 }
}

/**
 * Reads one page without its total, which can cost far more than the page.
 * @throws PostgresUnavailableError
 */
export async function listUncounted(
  postgres: Queryable,
  query: AlertQuery,
): Promise<UncountedPage> {
  const { rows } = await postgres.query<AlertRow>(toUncountedSql(query))
  return toPage(rows, query.limit)
}

/** @param found a row more than the page, if there is one */
function toPage(found: AlertRow[], limit: number): UncountedPage {
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const more = found.length > page.length && last !== undefined
  return {
    alerts: page.map(toAlert),
    next: more ? { createdAtMs: last.created_at.getTime(), alertId: last.alert_id } : null,
  }
}

// With a LIMIT in a parameter the planner expects a tenth of the table, so the limit is a literal.
// It has few values, because each makes a prepared statement on every connection.
const fetchSizes = [50, 100, 200, alertsPageMax]

/**
 * @returns the statement of a query. Its text, and so its name, depends on the kinds of filters and
 *   not on their values.
 */
export function toListSql(query: AlertQuery): Sql {
  const { toTotal, page, order, values } = toParts(query)
  const text = `
select total, page.*
from (select (${toTotal()})::bigint as total) as totals
left join (
  ${page}
) as page on true
${order}`
  return { name: toName(text), text, values }
}

/** @returns the statement of a query without its total, as `toListSql` */
function toUncountedSql(query: AlertQuery): Sql {
  const { page, values } = toParts(query)
  return { name: toName(page), text: page, values }
}

/** Postgres tells names apart by their first 63 bytes, so a name made of the filters could be cut. */
const toName = (text: string): string => `list-alerts ${hash('sha256', text, 'base64url')}`

function toParts(query: AlertQuery) {
  const fetched = 1 + (fetchSizes.find((size) => query.limit <= size) ?? alertsPageMax)
  const values: unknown[] = [query.tenantId]
  const bind = (value: unknown, type: string): string => `$${values.push(value)}::${type}`
  const bounds = toBounds(query)
  const toSql = isOfCounters(query) ? toCountedSql : toFilteredSql
  const { toTotal, toPage } = toSql(query, bounds, fetched, bind)
  const { filter, afterSeq } = query
  if (afterSeq !== undefined) {
    const page = toPageBySeq({ filter, afterSeq }, bounds, fetched, bind)
    return { toTotal, page, order: 'order by seq', values }
  }
  return {
    toTotal,
    page: `select * from (${toPage()}) as matching ${newestFirst} limit ${fetched}`,
    order: newestFirst,
    values,
  }
}

export type ValueCount = { value: string; alerts: number }

/** Of each: the column, and how the values of a row are found in it. */
const countedValues: Record<CountedBy, { column: string; from: string }> = {
  flag: { column: 'flags', from: 'cross join lateral jsonb_array_elements_text(flags) as value' },
  sdk_version: {
    column: 'sdk_version',
    from: 'cross join lateral (select sdk_version as value) as own',
  },
}

/**
 * Counts the alerts of a filter by a value that they have, as a menu shows it that chooses one: for
 * each value the length of the list that choosing it alone opens. A filter of the same name is left
 * out, since the menu changes it. It reads the index of the whole list for flags, and each alert of
 * the filter for versions, so callers bound it per tenant.
 * @returns most alerts first; at most `alertValuesMax`, since a client may invent versions
 * @throws PostgresUnavailableError
 */
export async function countAlertsBy(
  db: Queryable,
  { tenantId, filter, by }: { tenantId: string; filter: AlertFilter; by: CountedBy },
): Promise<ValueCount[]> {
  const bound: unknown[] = [tenantId]
  const bind = (value: unknown, type: string): string => `$${bound.push(value)}::${type}`
  const { column, from } = countedValues[by]
  const matching = toMatchingSql({ tenantId, filter: { ...filter, [by]: undefined } }, column, bind)
  const { rows } = await db.query<ValueCount>(
    `select value, count(*) as alerts from (${matching}) as matching ${from}
     where value is not null group by value order by alerts desc, value limit ${alertValuesMax}`,
    bound,
  )
  return rows
}
