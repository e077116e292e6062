/**
 * Lists of alerts by filters that no counter knows: flag, severity, score, user, session, assignee
 * and time of change. The index of the whole list and that of changes carry every other filter, so
 * the page and its total are found within them; then only the alerts of the page are read. The
 * indexes of a device, user, session and assignee do not: with other filters each alert of theirs
 * is read. A total costs as much as there are alerts in the range of the index, which is why
 * callers bound such lists per tenant.
 */

import {
  type AlertFilter,
  alertFilters,
  type FilterEntry,
  type FilterTest,
  filterNames,
  isCounted,
  listGiven,
  unassigned,
} from '#shared/core/alerts/alert-filters.ts'
import { type Severity, toScoreRange } from '#shared/core/scoring/score.ts'
import { alertColumns } from './alert-columns.ts'
import {
  type AlertQuery,
  type AlertSelection,
  type Bind,
  type Bounds,
  type ListParts,
  newestFirst,
  toBounds,
  toPageConditions,
  toSqlTime,
} from './alert-query.ts'

/** Whether the counters know everything that a query asks for. */
export const isOfCounters = ({ filter = {}, alertIds }: AlertSelection): boolean =>
  alertIds === undefined && isCounted(filter)

/** Whether a query may read many alerts: what is no range of an index is filtered one by one. */
export const isFiltered = (query: AlertQuery): boolean =>
  !isOfCounters(query) || (query.afterSeq !== undefined && listGiven(query.filter ?? {}).length > 0)

/** The statement's parts for a query with such a filter. */
export function toFilteredSql(
  query: AlertQuery,
  bounds: Bounds,
  fetched: number,
  bind: Bind,
): ListParts {
  const sources = toSources(query, bind)
  const toTotal = () => {
    const all = toSpanConditions(bounds, bind)
    return sources.map((source) => `(select count(*) ${toFrom(source, all)})`).join(' + ')
  }
  const toPage = () => {
    const rows = toPageConditions(bounds, bind)
    const ordered = sources.map(
      (source) =>
        `(select created_at, alert_id ${toFrom(source, rows)} ${newestFirst} limit ${fetched})`,
    )
    return `select found.* from (
      select * from (${ordered.join(' union all ')}) as keys ${newestFirst} limit ${fetched}
    ) as keys
    cross join lateral (
      select ${alertColumns} from alerts where tenant_id = $1 and alert_id = keys.alert_id
    ) as found`
  }
  return { toTotal, toPage }
}

const toSpanConditions = ({ span }: Bounds, bind: Bind): string[] => [
  `created_at >= ${bind(toSqlTime(span.fromMs), 'timestamptz')}`,
  `created_at < ${bind(toSqlTime(span.toMs), 'timestamptz')}`,
]

/** The rows of a selection, whatever its page: a query of some columns. */
export function toMatchingSql(selection: AlertSelection, columns: string, bind: Bind): string {
  const all = toSpanConditions(toBounds({ ...selection, after: null, limit: 1 }), bind)
  return toSources(selection, bind)
    .map((source) => `(select ${columns} ${toFrom(source, all, columns)})`)
    .join(' union all ')
}

/**
 * A page in the order of `seq`: a range of its index, of which rows that do not match are read and
 * passed over.
 * @param afterSeq the first row has a higher one
 */
export function toPageBySeq(
  { filter = {}, afterSeq }: { filter?: AlertFilter | undefined; afterSeq: number },
  { span }: Bounds,
  fetched: number,
  bind: Bind,
): string {
  const { updated_after: since } = filter
  const toTime = (ms: number) => bind(toSqlTime(ms), 'timestamptz')
  const where = [
    'tenant_id = $1',
    `seq > ${bind(afterSeq, 'bigint')}`,
    ...(span.fromMs > -Infinity ? [`created_at >= ${toTime(span.fromMs)}`] : []),
    ...(span.toMs < Infinity ? [`created_at < ${toTime(span.toMs)}`] : []),
    ...toConditions(filter, bind),
    ...(since === undefined ? [] : [isChangedSince(toTime(since))]),
  ]
  return `select ${alertColumns} from alerts where ${where.join(' and ')}
    order by seq limit ${fetched}`
}

/** SQL: raised or changed at an instant or later. */
const isChangedSince = (since: string): string => `greatest(created_at, changed_at) >= ${since}`

/** Rows of one index. `isFew`: sorted after they are found, since its order is not that of lists. */
type Source = { where: string[]; isFew: boolean }

function toFrom({ where, isFew }: Source, times: string[], columns = 'alert_id'): string {
  const found = ['tenant_id = $1', ...where]
  if (!isFew) return `from alerts where ${[...found, ...times].join(' and ')}`
  // The fence keeps the planner from walking the whole list by its times for a few rows.
  return `from (
      select created_at, ${columns} from alerts where ${found.join(' and ')} offset 0
    ) as few where ${times.join(' and ')}`
}

function toSources({ filter = {}, alertIds }: AlertSelection, bind: Bind): Source[] {
  const given = listGiven(filter).filter((one) => !isUnassigned(one.entry, one.value))
  const where = toConditions(filter, bind)
  if (alertIds !== undefined) where.push(`alert_id = any(${bind([...alertIds], 'text[]')})`)
  const isFew = alertIds !== undefined || given.some(({ entry }) => entry.index === 'few')
  const isFound = isFew || given.some(({ entry }) => entry.index === 'ordered')
  if (filter.updated_after === undefined) return [{ where, isFew }]
  const since = bind(toSqlTime(filter.updated_after), 'timestamptz')
  if (isFound) {
    return [{ where: [...where, isChangedSince(since)], isFew }]
  }
  // Raised since, or raised before and changed since: each has an index.
  const raised = { where: [...where, `created_at >= ${since}`], isFew: false }
  const before = `greatest(created_at, ${since}) > created_at`
  const changed = { where: [...where, `changed_at >= ${since}`, before], isFew: true }
  return [raised, changed]
}

/** The type of a bound value and its comparison with a column. */
type Comparison = {
  type: string
  toSql: (column: string, bound: string) => string
  /** The value to bind, where it is not the filter's. */
  toBound?: (value: never) => string
}

/** Null: the rows that are read decide it, not a condition on each. */
const comparisons: Record<FilterTest, Comparison | null> = {
  is_one_of: { type: 'text[]', toSql: (column, words) => `${column} = any(${words})` },
  has_one_of: { type: 'text[]', toSql: (column, codes) => `${column} ?| ${codes}` },
  is_severity: {
    type: 'int4multirange',
    toSql: (column, scores) => `${column} <@ ${scores}`,
    toBound: toScores,
  },
  at_least: { type: 'integer', toSql: (column, least) => `${column} >= ${least}` },
  is: { type: 'text', toSql: (column, id) => `${column} = ${id}` },
  is_number: { type: 'bigint', toSql: (column, number) => `${column} = ${number}` },
  is_within: { type: 'cidr', toSql: (column, network) => `${column} <<= ${network}` },
  page: null,
  updated: null,
}

/**
 * A condition for each filter. Those on columns of the list's index are in every statement and may
 * be null, so that one text serves every choice of them.
 */
function toConditions(filter: AlertFilter, bind: Bind): string[] {
  return filterNames.flatMap((name) => {
    const entry: FilterEntry = alertFilters[name]
    const { column, test, index } = entry
    const value = filter[name]
    if (isUnassigned(entry, value)) return [`${column} is null`]
    const comparison = comparisons[test]
    if (comparison === null || (value === undefined && index !== 'list')) return []
    const { type, toSql, toBound } = comparison
    const bound = bind(value === undefined ? null : (toBound?.(value as never) ?? value), type)
    const condition = toSql(column, bound)
    return index === 'list' ? `(${bound} is null or ${condition})` : condition
  })
}

const isUnassigned = ({ takes }: FilterEntry, value: unknown): boolean =>
  takes === 'assignee' && value === unassigned

/** The risk scores of some severities, as a literal of a multirange. */
function toScores(chosen: readonly Severity[]): string {
  const ranges = chosen.map((severity) => `[${toScoreRange(severity).join()})`)
  return `{${ranges.join()}}`
}
