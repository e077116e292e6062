/**
 * Lists alerts: a page and its exact total from one statement, so from one snapshot. Every page is
 * a range of an index. A total is a sum of counters; for a range of time, counts of at most half an
 * hour at each end are added or subtracted. Only a device's alerts are counted one by one.
 */
import {
  type Alert,
  type AlertCandidate,
  type Decision,
  type Disposition,
  decisions,
  dispositions,
  toAlert,
} from '#shared/core/alerts/alert-rules.ts'
import { type SignedSpan, type Span, splitSpan } from '#shared/core/base/instants.ts'
import { alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import type { Queryable, Sql } from '#shared/io/postgres/postgres.ts'

/** The last row of a page. */
type AlertPosition = { createdAtMs: number; alertId: string }

export type AlertQuery = {
  tenantId: string
  disposition?: Disposition | undefined
  decision?: Decision | undefined
  deviceId?: string | undefined
  /** Alerts created at this instant or later, in ms since 1970. */
  fromMs?: number | undefined
  /** Alerts created before this instant. */
  toMs?: number | undefined
  /** 1 to 500 rows. */
  limit: number
  /** Rows after this one; null begins with the newest. */
  after: AlertPosition | null
}

export type AlertPage = {
  /** Newest first: by `created_at`, then `alert_id`, both descending. */
  alerts: Alert[]
  /** Number of alerts that match the filters, on all pages. */
  total: number
  /** `after` of the next page; null on the last page. */
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

/** The columns of one alert, for every statement that returns alerts. */
export const alertColumns = `alert_id, seq, device_id, session_id, user_id, action, risk_score,
  rasp_score, reasons, disposition, created_at`

/** A row of `alertColumns`. */
export type AlertRow = {
  alert_id: string
  seq: number
  device_id: string
  session_id: string
  user_id: string | null
  action: Decision
  risk_score: number
  rasp_score: number
  reasons: AlertCandidate['reasons']
  disposition: Disposition
  created_at: Date
}

/** Converts a row to the alert that clients see. */
export function toAlertOfRow(row: AlertRow): Alert {
  return toAlert(
    {
      alertId: row.alert_id,
      deviceId: row.device_id,
      sessionId: row.session_id,
      userId: row.user_id,
      action: row.action,
      riskScore: row.risk_score,
      raspScore: row.rasp_score,
      reasons: row.reasons,
    },
    { seq: row.seq, disposition: row.disposition, createdAt: row.created_at },
  )
}

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

/** Whether Postgres can store a text: a NUL would be an error of a query. */
export const canBeStored = (text: string): boolean => !text.includes('\u0000')

/** Finds one alert by its id. @throws PostgresUnavailableError */
export async function findAlert(
  postgres: Queryable,
  { alertId, tenantId }: { alertId: string; tenantId?: string | undefined },
): Promise<Alert | null> {
  if (!canBeStored(alertId)) return null
  const { rows } = await postgres.query<AlertRow>(
    `select ${alertColumns} from alerts
     where alert_id = $1 and tenant_id = coalesce($2, tenant_id) limit 1`,
    [alertId, tenantId ?? null],
  )
  return rows[0] === undefined ? null : toAlertOfRow(rows[0])
}

// With a LIMIT in a parameter the planner expects a tenth of the table, so the limit is a literal.
// It
// has few values, because each makes a prepared statement on every connection.
const fetchSizes = [50, 100, 200, alertsPageMax]

/**
 * @returns the statement of a query. Its text, and so its name, depends on the kinds of filters and
 *   not on their values: 16 kinds by 4 sizes.
 */
export function toListSql(query: AlertQuery): Sql {
  const fetched = 1 + (fetchSizes.find((size) => query.limit <= size) ?? alertsPageMax)
  const values: unknown[] = [query.tenantId]
  const bind = (value: unknown, type: string): string => `$${values.push(value)}::${type}`
  const span = { fromMs: query.fromMs ?? -Infinity, toMs: query.toMs ?? Infinity }
  const filters = {
    disposition: query.disposition && bind(query.disposition, 'text'),
    decision: query.decision && bind(query.decision, 'text'),
    device: query.deviceId && bind(query.deviceId, 'text'),
  }
  const text = `
select total, page.*
from (select (${toTotalSql(filters, span, bind)})::bigint as total) as totals
left join (
  select * from (${toPageSql(filters, toBounds(query, span), fetched, bind)}) as matching
  ${newestFirst} limit ${fetched}
) as page on true
${newestFirst}`
  const ranged = isBounded(span) ? 'range' : ''
  const kinds = [...Object.entries(filters).filter(([, value]) => value), [ranged, ranged]]
  return { name: `list-alerts ${kinds.map(([kind]) => kind).join(' ')} ${fetched}`, text, values }
}

const newestFirst = 'order by created_at desc, alert_id desc'

type Bind = (value: unknown, type: string) => string
type Filters = Record<'disposition' | 'decision' | 'device', string | undefined>
type Bounds = { fromMs: number; before: AlertPosition }

const isBounded = (span: Span): boolean => span.fromMs > -Infinity || span.toMs < Infinity

/** Combines both upper bounds: no id sorts before the empty one. */
function toBounds({ after }: AlertQuery, { fromMs, toMs }: Span): Bounds {
  const before = after !== null && after.createdAtMs < toMs ? after : null
  return { fromMs, before: before ?? { createdAtMs: toMs, alertId: '' } }
}

/**
 * @returns SQL of the candidate rows of a page. With a disposition or a decision, all values of the
 *   other one are listed: each pair is an ordered range of one index with its own limit, and the
 *   planner merges them.
 */
function toPageSql(filters: Filters, bounds: Bounds, fetched: number, bind: Bind): string {
  const { fromMs, before } = bounds
  const end = [bind(toSqlTime(before.createdAtMs), 'timestamptz'), bind(before.alertId, 'text')]
  const where = [
    'tenant_id = $1',
    `created_at >= ${bind(toSqlTime(fromMs), 'timestamptz')}`,
    `(created_at, alert_id) < (${end.join(', ')})`,
  ]
  const branch = (conditions: string[]): string =>
    `(select ${alertColumns} from alerts where ${[...where, ...conditions].join(' and ')}
    ${newestFirst} limit ${fetched})`
  const { disposition, decision, device } = filters
  if (device !== undefined || (disposition === undefined && decision === undefined)) {
    return branch(toConditions(filters))
  }
  const inState = disposition === undefined ? dispositions.map(quote) : [disposition]
  const decided = decision === undefined ? decisions.map(quote) : [decision]
  return inState
    .flatMap((state) =>
      decided.map((action) => branch([`disposition = ${state}`, `action = ${action}`])),
    )
    .join(' union all ')
}

/** Quotes a constant of this code. */
const quote = (word: string): string => `'${word}'`

function toConditions({ disposition, decision, device }: Filters, action = 'action'): string[] {
  const conditions: string[] = []
  if (device !== undefined) conditions.push(`device_id = ${device}`)
  if (disposition !== undefined) conditions.push(`disposition = ${disposition}`)
  if (decision !== undefined) conditions.push(`${action} = ${decision}`)
  return conditions
}

/** @returns SQL of the total, a scalar expression */
function toTotalSql(filters: Filters, span: Span, bind: Bind): string {
  const within = (column: string, { fromMs, toMs }: Span): string[] => [
    `${column} >= ${bind(toSqlTime(fromMs), 'timestamptz')}`,
    `${column} < ${bind(toSqlTime(toMs), 'timestamptz')}`,
  ]
  const withinDays = ({ fromMs, toMs }: Span): string[] => [
    `day >= ${bind(toSqlDay(fromMs), 'date')}`,
    `day < ${bind(toSqlDay(toMs), 'date')}`,
  ]
  const counted = (part: Span): string =>
    `(select count(*) from alerts where ${[
      'tenant_id = $1',
      ...toConditions(filters),
      ...within('created_at', part),
    ].join(' and ')})`
  const summed = (table: string, conditions: string[]): string =>
    `(select coalesce(sum(alert_count), 0) from ${table} where ${[
      'tenant_id = $1',
      ...toConditions(filters, 'decision'),
      ...conditions,
    ].join(' and ')})`
  // An empty part reads nothing.
  const signed = (part: SignedSpan, sql: string): string => {
    const sign = bind(part.sign, 'integer')
    return `case when ${sign} = 0 then 0 else ${sign} * ${sql} end`
  }
  if (filters.device !== undefined) return counted(span)
  if (!isBounded(span)) return summed('alert_counts_by_day', [])
  const { days, hours, rests } = splitSpan(span)
  return [
    summed('alert_counts_by_day', withinDays(days)),
    ...hours.map((part) => signed(part, summed('alert_counts_by_hour', within('hour', part)))),
    ...rests.map((part) => signed(part, counted(part))),
  ].join(' + ')
}

const latestMs = Date.UTC(9999, 11, 31)

/** Instants outside 1970 to 9999, which Postgres cannot parse, become infinite. */
function toSqlTime(ms: number): string {
  if (ms < 0) return '-infinity'
  return ms > latestMs ? 'infinity' : new Date(ms).toISOString()
}

/** @returns the date of a midnight in UTC */
function toSqlDay(ms: number): string {
  return toSqlTime(ms).slice(0, 'YYYY-MM-DD'.length)
}
