/** The columns of a case, and conditions and orders of the queue, for every statement of cases. */
import type { CaseRow } from '#shared/core/cases/case.ts'
import {
  type CaseFilter,
  type CaseSort,
  noAssignee,
  ownAssignee,
} from '#shared/core/cases/case-schemas.ts'
import { toTime } from '#shared/io/postgres/postgres.ts'

export type FoundCase = CaseRow & { now_ms: number }

/** SQL: the columns of a case `c`, and the clock with which its times are compared. */
export const foundCaseColumns = `c.tenant_id, c.case_id, c.subject_kind, c.subject_id, c.state,
  c.alert_count, c.open_count, c.risk_score, c.action, c.flags, c.first_alert_at,
  c.latest_alert_at, nullif(c.due_at, 'infinity') as due_at, c.snoozed_until, c.assignee,
  c.judged_by, c.judged_at, c.leased_by, c.leased_until, c.merged_into, c.version,
  (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`

/** Adds a parameter to the statement and returns its place in the text. */
export type Bind = (value: unknown, type: string) => string

export function createBind(): { bind: Bind; values: unknown[] } {
  const values: unknown[] = []
  return { values, bind: (value, type) => `$${values.push(value)}::${type}` }
}

/** Which cases: `caller` is the operator whom `me` stands for. */
export type CaseSelection = { tenantId: string; filter: CaseFilter; caller: string }

const snoozed = `coalesce(c.snoozed_until > now(), false)`
const stateConditions = {
  OPEN: `(c.closed_at is null and not ${snoozed})`,
  SNOOZED: `(c.closed_at is null and ${snoozed})`,
  CLOSED: 'c.closed_at is not null',
}

/** SQL: what a case `c` of the selection fulfils. */
export function toCaseConditions(
  { tenantId, filter, caller }: CaseSelection,
  bind: Bind,
): string[] {
  const { state, action, min_risk, flag, assignee, subject_kind, breached, q } = filter
  const { begun_from: begunFrom, begun_to: begunTo } = filter
  return [
    `c.tenant_id = ${bind(tenantId, 'text')}`,
    'c.merged_into is null',
    // Said apart, so that the indexes of open cases serve.
    ...(state === undefined || state.includes('CLOSED') ? [] : ['c.closed_at is null']),
    ...(state === undefined ? [] : [`(${state.map((one) => stateConditions[one]).join(' or ')})`]),
    ...(action === undefined ? [] : [`c.action = any(${bind([...action], 'text[]')})`]),
    ...(min_risk === undefined ? [] : [`c.risk_score >= ${bind(min_risk, 'integer')}`]),
    ...(flag === undefined ? [] : [`c.flags ?| ${bind([...flag], 'text[]')}`]),
    ...(assignee === undefined
      ? []
      : assignee === noAssignee
        ? ['c.assignee is null']
        : [`c.assignee = ${bind(assignee === ownAssignee ? caller : assignee, 'text')}`]),
    ...(subject_kind === undefined
      ? []
      : [`c.subject_kind = any(${bind([...subject_kind], 'text[]')})`]),
    ...(breached === undefined ? [] : [breached ? 'c.due_at <= now()' : 'c.due_at > now()']),
    ...(begunFrom === undefined
      ? []
      : [`c.first_alert_at >= ${bind(toTime(begunFrom), 'timestamptz')}`]),
    ...(begunTo === undefined
      ? []
      : [`c.first_alert_at < ${bind(toTime(begunTo), 'timestamptz')}`]),
    ...(q === undefined || q === ''
      ? []
      : [toTextCondition(bind(tenantId, 'text'), bind(q, 'text'))]),
  ]
}

/** The newest alerts of a device or a user whose cases a text finds. */
const textAlertsMax = 1_000

/** SQL: a part of the subject, the beginning of the case, or a device or user of its alerts. */
function toTextCondition(tenant: string, text: string): string {
  const casesOf = (column: string) =>
    `(select case_id from alerts where tenant_id = ${tenant} and ${column} = ${text}
      order by created_at desc, alert_id desc limit ${textAlertsMax})`
  return `(strpos(lower(c.subject_id), lower(${text})) > 0 or starts_with(c.case_id, ${text})
    or c.case_id in (${casesOf('device_id')} union all ${casesOf('user_id')}))`
}

/** Where a page ended, by the columns of its order. */
export type CasePosition = {
  dueMs: number | null
  risk: number
  firstMs: number
  latestMs: number
  caseId: string
}

const toSqlDue = (ms: number | null): string => (ms === null ? 'infinity' : toTime(ms))

/** The orders of the queue, each with what comes after a position. */
export const caseOrders: Record<
  CaseSort,
  { orderBy: string; after: (position: CasePosition, bind: Bind) => string }
> = {
  due: {
    orderBy: 'c.due_at, c.case_id',
    after: ({ dueMs, caseId }, bind) =>
      `(c.due_at, c.case_id) > (${bind(toSqlDue(dueMs), 'timestamptz')}, ${bind(caseId, 'text')})`,
  },
  risk: {
    orderBy: 'c.risk_score desc, c.first_alert_at desc, c.case_id desc',
    after: ({ risk, firstMs, caseId }, bind) =>
      `(c.risk_score, c.first_alert_at, c.case_id) < (${bind(risk, 'integer')}, ` +
      `${bind(toTime(firstMs), 'timestamptz')}, ${bind(caseId, 'text')})`,
  },
  latest: {
    // The hour has the index; rows of an hour are sorted.
    orderBy: 'c.latest_hour desc, c.latest_alert_at desc, c.case_id desc',
    after: ({ latestMs, caseId }, bind) => {
      const at = bind(toTime(latestMs), 'timestamptz')
      const hour = `date_bin('1 hour', ${at}, 'epoch')`
      return (
        `c.latest_hour <= ${hour} and ` +
        `(c.latest_alert_at, c.case_id) < (${at}, ${bind(caseId, 'text')})`
      )
    },
  },
}
