/**
 * The part of the statement that raises alerts which changes their cases: it begins cases, or adds
 * the alerts to what cases count, and records which ones are open again.
 */
import { toIso } from '#shared/core/base/instants.ts'
import type { RaisedCase } from '#shared/core/cases/raised-cases.ts'
import type { RowColumn } from '#shared/io/postgres/unnest.ts'

export const caseColumns: RowColumn<RaisedCase>[] = [
  { column: 'case_id', type: 'text', of: ({ caseId }) => caseId },
  { column: 'tenant_id', type: 'text', of: ({ tenantId }) => tenantId },
  { column: 'subject_kind', type: 'text', of: ({ subject }) => subject.kind },
  { column: 'subject_id', type: 'text', of: ({ subject }) => subject.id },
  { column: 'reopened', type: 'boolean', of: ({ reopened }) => reopened },
  { column: 'alert_count', type: 'bigint', of: ({ alerts }) => alerts },
  { column: 'risk_score', type: 'integer', of: ({ riskScore }) => riskScore },
  { column: 'action', type: 'text', of: ({ action }) => action },
  { column: 'flags', type: 'jsonb', of: ({ flags }) => JSON.stringify(flags) },
  { column: 'first_alert_at', type: 'timestamptz', of: ({ firstMs }) => toIso(firstMs) },
  { column: 'latest_alert_at', type: 'timestamptz', of: ({ latestMs }) => toIso(latestMs) },
  { column: 'due_at', type: 'timestamptz', of: ({ dueMs }) => toIso(dueMs) },
  { column: 'block_due_hours', type: 'integer', of: ({ rules }) => rules.blockDueHours },
  { column: 'review_due_hours', type: 'integer', of: ({ rules }) => rules.reviewDueHours },
]

/**
 * SQL: parts of a `with`. The caller raises `case_seq` by one in the same statement. Flags are
 * those that were read under the lock, and more: to add them up here costs as much as all the rest.
 * @param raised the part with the rows of `caseColumns`
 */
export const raiseCasesSql = (raised: string): string => `counted_by_case as (
  insert into cases as c (case_id, tenant_id, subject_kind, subject_id, alert_count, open_count,
    risk_score, action, flags, first_alert_at, latest_alert_at, due_at, block_due_hours,
    review_due_hours, closed_at)
  select case_id, tenant_id, subject_kind, subject_id, alert_count, alert_count,
    risk_score, action, flags, first_alert_at, latest_alert_at, due_at, block_due_hours,
    review_due_hours, null
  from ${raised}
  on conflict (case_id) do update set
    alert_count = c.alert_count + excluded.alert_count,
    open_count = c.open_count + excluded.open_count,
    risk_score = greatest(c.risk_score, excluded.risk_score),
    action = least(c.action, excluded.action),
    flags = excluded.flags,
    first_alert_at = least(c.first_alert_at, excluded.first_alert_at),
    latest_alert_at = greatest(c.latest_alert_at, excluded.latest_alert_at),
    due_at = least(c.due_at, excluded.due_at),
    block_due_hours = excluded.block_due_hours,
    review_due_hours = excluded.review_due_hours,
    closed_at = null,
    version = c.version + 1
), told as (
  insert into case_changes (tenant_id, seq, case_ids)
  select tenant_id, case_seq + 1, array_agg(case_id)
  from ${raised} join alert_sequences using (tenant_id) group by tenant_id, case_seq
), opened_again as (
  insert into case_events (case_id, kind, actor, at)
  select case_id, 'reopened', 'system', first_alert_at from ${raised} where reopened
)`
