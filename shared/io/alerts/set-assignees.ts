/**
 * Changes the assignees of alerts of a tenant in one statement: the alerts, the history of their
 * assignees and the audit log, one entry for each alert. Call it under the lock of the tenant's
 * alerts (alert-lock.ts), which every change of an assignee takes.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { nextChange } from './set-dispositions.ts'

const assignAllSql = `
with found as materialized (
  select a.alert_id, a.assignee, wanted.assignee as becomes, wanted.undoes,
    ${nextChange('a')} as at
  from unnest($2::text[], $3::text[], $7::bigint[]) as wanted (alert_id, assignee, undoes)
  join alerts as a on a.tenant_id = $1::text and a.alert_id = wanted.alert_id
  where a.assignee is distinct from wanted.assignee
), moved as (
  update alerts as a set assignee = found.becomes, changed_at = found.at from found
  where a.tenant_id = $1 and a.alert_id = found.alert_id
), recorded as (
  insert into alert_assignments
    (tenant_id, alert_id, from_assignee, to_assignee, actor, job_id, undoes, at)
  select $1, alert_id, assignee, becomes, $4::text, $5::text, undoes, at from found
), audited as (
  insert into audit_log (actor, tenant_id, action, before, after)
  select $4::text, $1,
    case when $6::text is null then 'alert.assigned' else 'alert.assignment_undone' end,
    jsonb_build_object('alert_id', alert_id, 'assignee', assignee),
    jsonb_build_object('alert_id', alert_id, 'assignee', becomes)
      || case when $5::text is null then '{}' else jsonb_build_object('job_id', $5::text) end
      || case when $6::text is null then '{}' else jsonb_build_object('undo_of', $6::text) end
  from found
)
select count(*) as changed from found`

/**
 * @param change.alerts null as the assignee takes it away; `undoes`: the change in the
 *   alert's history that is undone
 * @param change.jobId the bulk job that does it, null for a single change
 * @param change.undoOf the job whose changes are undone, null for other changes
 * @returns how many changed; those that have the assignee already do not
 */
export async function setAssignees(
  tx: Queryable,
  change: {
    tenantId: string
    alerts: readonly { alertId: string; assignee: string | null; undoes?: number }[]
    actor: string
    jobId: string | null
    undoOf: string | null
  },
): Promise<number> {
  const { tenantId, alerts, actor, jobId, undoOf } = change
  const alertIds = alerts.map(({ alertId }) => alertId)
  const assignees = alerts.map(({ assignee }) => assignee)
  const undoes = alerts.map((one) => one.undoes ?? null)
  const { rows } = await tx.query<{ changed: number }>({
    name: 'set-assignees',
    text: assignAllSql,
    values: [tenantId, alertIds, assignees, actor, jobId, undoOf, undoes],
  })
  return rows[0]!.changed
}
