/**
 * Listing alerts: a page and its exact total from one statement, so from one snapshot. What
 * counters and ordered indexes answer is in counted-alerts-sql.ts, every other filter in
 * filtered-alerts-sql.ts.
 */
import type { Alert } from '#shared/core/alerts/alert-rules.ts'
import { alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import type { Queryable, Sql } from '#shared/io/postgres/postgres.ts'
import { type AlertPosition, type AlertQuery, newestFirst, toBounds } from './alert-query.ts'
import { type AlertRow, toAlertOfRow } from './alert-rows.ts'
import { toCountedSql } from './counted-alerts-sql.ts'
import { isFiltered, toFilteredSql } from './filtered-alerts-sql.ts'

export type AlertPage = {
  /** Newest first: by `created_at`, then `alert_id`, both descending. */
  alerts: Alert[]
  /** How many alerts match the filters, wherever the page begins. */
  total: number
  /** What `after` is for the next page, or null when this one is the last. */
  next: AlertPosition | null
}

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
  const total = rows[0]?.total ?? 0
  const found = rows.filter((row) => row.alert_id !== null)
  const page = found.slice(0, query.limit)
  const last = page.at(-1)
  const more = found.length > page.length && last !== undefined
  return {
    alerts: page.map(toAlertOfRow),
    total,
    next: more ? { createdAtMs: last.created_at.getTime(), alertId: last.alert_id } : null,
  }
}

// With a LIMIT in a parameter the planner expects a tenth of the table, so the limit is a literal.
// It has few values, because each makes a prepared statement on every connection.
const fetchSizes = [50, 100, 200, alertsPageMax]

/**
 * @returns the statement of a query. Its text, and so its name, depends on the kinds of filters and
 *   not on their values. Postgres tells names apart by their first 63 bytes.
 */
export function toListSql(query: AlertQuery): Sql {
  const fetched = 1 + (fetchSizes.find((size) => query.limit <= size) ?? alertsPageMax)
  const values: unknown[] = [query.tenantId]
  const bind = (value: unknown, type: string): string => `$${values.push(value)}::${type}`
  const bounds = toBounds(query)
  const { kinds, total, page } = isFiltered(query)
    ? toFilteredSql(query, bounds, fetched, bind)
    : toCountedSql(query, bounds, fetched, bind)
  const text = `
select total, page.*
from (select (${total})::bigint as total) as totals
left join (
  select * from (${page}) as matching
  ${newestFirst} limit ${fetched}
) as page on true
${newestFirst}`
  return { name: `list-alerts ${kinds.join(' ')} ${fetched}`, text, values }
}
