/**
 * Lists of alerts by disposition, decision, device and time: a page is a few ranges of an index,
 * and the total a sum of counters; at the ends of a time range two counts of at most half an hour
 * each are added or taken away. Only a device's few alerts are counted one by one.
 */

import type { AlertFilter, CountedFilter } from '#shared/core/alerts/alert-filters.ts'
import { decisions, dispositions } from '#shared/core/alerts/dispositions.ts'
import { type SignedSpan, type Span, splitSpan } from '#shared/core/base/instants.ts'
import { alertColumns } from './alert-columns.ts'
import {
  type AlertQuery,
  type Bind,
  type Bounds,
  type ListParts,
  newestFirst,
  toPageConditions,
  toSqlTime,
} from './alert-query.ts'

type Filters = Record<'disposition' | 'decision' | 'device', string | undefined>

const isBounded = (span: Span): boolean => span.fromMs > -Infinity || span.toMs < Infinity

/**
 * The statement's parts for a query without other filters.
 * @param query.filter only filters that the counters know
 */
export function toCountedSql(
  query: AlertQuery,
  bounds: Bounds,
  fetched: number,
  bind: Bind,
): ListParts {
  const { device_id: deviceId, ...given }: Pick<AlertFilter, CountedFilter> = query.filter ?? {}
  const { from: _from, to: _to, disposition: states, decision: actions, ...others } = given
  // A filter that the table calls counted and that is not counted here does not compile.
  others satisfies Record<string, never>
  const device = deviceId && bind(deviceId, 'text')
  const disposition = toChoice(states, dispositions, bind)
  const decision = toChoice(actions, decisions, bind)
  const filters = { disposition: disposition.some, decision: decision.some, device }
  return {
    toTotal: () => toTotalSql(filters, bounds.span, bind),
    toPage: () => toPageSql(filters, { bounds, fetched, disposition, decision }, bind),
  }
}

function toPageSql(
  filters: Filters,
  list: { bounds: Bounds; fetched: number; disposition: Choice; decision: Choice },
  bind: Bind,
): string {
  const { bounds, fetched, disposition, decision } = list
  const where = ['tenant_id = $1', ...toPageConditions(bounds, bind)]
  const branch = (conditions: string[]): string =>
    `(select ${alertColumns} from alerts where ${[...where, ...conditions].join(' and ')}
    ${newestFirst} limit ${fetched})`
  const isOneRange = disposition.some === undefined && decision.some === undefined
  if (filters.device !== undefined || isOneRange) return branch(toConditions(filters))
  // With one of disposition and decision given, the other's few values are listed: each pair is one
  // ordered range of one index, and the planner merges them. Each is limited by itself, since it is
  // planned by itself.
  const pages = disposition
    .each('disposition')
    .flatMap((state) => decision.each('action').map((action) => branch([...state, ...action])))
  return pages.join(' union all ')
}

type Choice = {
  /** An array of the chosen values, as a parameter; undefined when all are. */
  some: string | undefined
  /** The conditions of each branch that together find the chosen values of a column. */
  each: (column: string) => string[][]
}

/** Words of our own, never of a client. */
const quote = (word: string): string => `'${word}'`

function toChoice(
  chosen: readonly string[] | undefined,
  all: readonly string[],
  bind: Bind,
): Choice {
  const listed = (column: string) => all.map((word) => [`${column} = ${quote(word)}`])
  if (chosen === undefined || chosen.length === all.length) {
    return { some: undefined, each: listed }
  }
  const some = bind([...chosen], 'text[]')
  if (chosen.length === 1) {
    return { some, each: (column) => [[`${column} = (${some})[1]`]] }
  }
  // A branch of a value that is not chosen is not even begun.
  const each = (column: string) =>
    all.map((word) => [`${column} = ${quote(word)}`, `${quote(word)} = any(${some})`])
  return { some, each }
}

function toConditions({ disposition, decision, device }: Filters, action = 'action'): string[] {
  const conditions: string[] = []
  if (device !== undefined) conditions.push(`device_id = ${device}`)
  if (disposition !== undefined) conditions.push(`disposition = any(${disposition})`)
  if (decision !== undefined) conditions.push(`${action} = any(${decision})`)
  return conditions
}

/** The total as one scalar expression. */
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
  // A part that is empty is not even looked for.
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

/** The UTC date of a midnight in UTC. */
function toSqlDay(ms: number): string {
  return toSqlTime(ms).slice(0, 'YYYY-MM-DD'.length)
}
