/**
 * Lists of alerts by filters that no counter knows: flag, severity, score, user, session, assignee
 * and time of change. The index of the whole list and that of changes carry every other filter, so
 * the page and its total are found within them; then only the alerts of the page are read. The
 * indexes of a device, user, session and assignee do not: with other filters each alert of theirs
 * is read. A total costs as much as there are alerts in the range of the index, which is why
 * callers bound such lists per tenant.
 */
import { type Severity, severities, toScoreRange } from '#shared/core/scoring/score.ts'
import {
  type AlertFilters,
  type AlertQuery,
  type Bind,
  type Bounds,
  type ListParts,
  newestFirst,
  toPageConditions,
  toSqlTime,
} from './alert-query.ts'
import { alertColumns } from './alert-rows.ts'

/** Whether a query has a filter that no counter knows. */
export function isFiltered(query: AlertFilters): boolean {
  const { userId, sessionId, flags, severities: some, minScore, assignee, updatedAfterMs } = query
  const { alertIds } = query
  const values = [userId, sessionId, flags, some, minScore, assignee, updatedAfterMs, alertIds]
  return values.some((value) => value !== undefined)
}

/** The statement's parts for a query with such a filter. */
export function toFilteredSql(
  query: AlertQuery,
  bounds: Bounds,
  fetched: number,
  bind: Bind,
): ListParts {
  const { kinds, sources } = toSources(query, bind)
  const rows = toPageConditions(bounds, bind)
  const toTotal = () => {
    const all = [
      `created_at >= ${bind(toSqlTime(bounds.span.fromMs), 'timestamptz')}`,
      `created_at < ${bind(toSqlTime(bounds.span.toMs), 'timestamptz')}`,
    ]
    return sources.map((source) => `(select count(*) ${toFrom(source, all)})`).join(' + ')
  }
  const ordered = sources.map(
    (source) =>
      `(select created_at, alert_id ${toFrom(source, rows)} ${newestFirst} limit ${fetched})`,
  )
  const page = `select found.* from (
    select * from (${ordered.join(' union all ')}) as keys ${newestFirst} limit ${fetched}
  ) as keys
  cross join lateral (
    select ${alertColumns} from alerts where tenant_id = $1 and alert_id = keys.alert_id
  ) as found`
  return { kinds: ['by', ...kinds], toTotal, page }
}

/** Rows of one index. `isFew`: sorted after they are found, since its order is not that of lists. */
type Source = { where: string[]; isFew: boolean }

function toFrom({ where, isFew }: Source, times: string[]): string {
  const found = ['tenant_id = $1', ...where]
  if (!isFew) return `from alerts where ${[...found, ...times].join(' and ')}`
  // The fence keeps the planner from walking the whole list by its times for a few rows.
  return `from (select created_at, alert_id from alerts where ${found.join(' and ')} offset 0) as few
    where ${times.join(' and ')}`
}

function toSources(query: AlertQuery, bind: Bind): { kinds: string[]; sources: Source[] } {
  const where = toConditions(query, bind)
  const entities = Object.entries({
    device_id: query.deviceId,
    user_id: query.userId,
    session_id: query.sessionId,
    assignee: query.assignee ?? undefined,
  }).filter(([, id]) => id !== undefined)
  const isFew = query.sessionId !== undefined || query.alertIds !== undefined
  for (const [column, id] of entities) where.push(`${column} = ${bind(id, 'text')}`)
  const kinds = entities.map(([column]) => column.replace('_id', ''))
  if (query.assignee === null) {
    where.push('assignee is null')
    kinds.push('unassigned')
  }
  if (query.alertIds !== undefined) {
    where.push(`alert_id = any(${bind([...query.alertIds], 'text[]')})`)
    kinds.push('ids')
  }
  if (query.updatedAfterMs === undefined) return { kinds, sources: [{ where, isFew }] }
  const since = bind(toSqlTime(query.updatedAfterMs), 'timestamptz')
  if (entities.length > 0 || query.alertIds !== undefined) {
    const updated = `greatest(created_at, changed_at) >= ${since}`
    return { kinds: [...kinds, 'updated'], sources: [{ where: [...where, updated], isFew }] }
  }
  // Raised since, or raised before and changed since: each has an index.
  const raised = { where: [...where, `created_at >= ${since}`], isFew: false }
  const before = `greatest(created_at, ${since}) > created_at`
  const changed = { where: [...where, `changed_at >= ${since}`, before], isFew: true }
  return { kinds: [...kinds, 'updated'], sources: [raised, changed] }
}

/** Conditions whose values may be null, so that one text serves every choice of filters. */
function toConditions(query: AlertFilters, bind: Bind): string[] {
  const orNull = (values: readonly string[] | undefined, test: (bound: string) => string) => {
    const bound = bind(values === undefined ? null : [...values], 'text[]')
    return `(${bound} is null or ${test(bound)})`
  }
  return [
    orNull(query.dispositions, (some) => `disposition = any(${some})`),
    orNull(query.decisions, (some) => `action = any(${some})`),
    orNull(query.flags, (some) => `flags ?| ${some}`),
    `risk_score <@ ${bind(toScores(query), 'int4multirange')}`,
  ]
}

/** The risk scores of some severities, from a lowest score on, as a literal of a multirange. */
function toScores({ severities: some = severities, minScore = 0 }: AlertFilters): string {
  const ranges = some.flatMap((severity: Severity) => {
    const [from, below] = toScoreRange(severity)
    return minScore >= below ? [] : [`[${Math.max(from, minScore)},${below})`]
  })
  return `{${ranges.join(',')}}`
}
