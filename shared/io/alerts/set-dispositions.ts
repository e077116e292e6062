/**
 * Changes the dispositions of many alerts of a tenant in one statement: the alerts, their counters,
 * their histories and the audit log, one entry for each alert. Call it under the lock of the
 * tenant's alerts (alert-lock.ts), which every change of a disposition takes.
 */
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

const moveAllSql = `
with found as (
  select a.alert_id, a.disposition, wanted.disposition as becomes, a.action, a.created_at,
    wanted.undoes
  from unnest($2::text[], $3::text[], $8::bigint[]) as wanted (alert_id, disposition, undoes)
  join alerts as a on a.tenant_id = $1::text and a.alert_id = wanted.alert_id
  where a.disposition <> wanted.disposition
), moved as (
  update alerts as a set disposition = found.becomes, changed_at = clock_timestamp() from found
  where a.tenant_id = $1 and a.alert_id = found.alert_id
), changes as (
  select created_at, action, disposition, -1 as change from found
  union all select created_at, action, becomes, 1 from found
), counted as (
  insert into alert_counts_by_day as counts (tenant_id, day, disposition, decision, alert_count)
  select $1, (created_at at time zone 'UTC')::date, disposition, action, sum(change)
  from changes group by 2, 3, 4
  on conflict (tenant_id, day, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), counted_by_hour as (
  insert into alert_counts_by_hour as counts (tenant_id, hour, disposition, decision, alert_count)
  select $1, date_bin('1 hour', created_at, 'epoch'), disposition, action, sum(change)
  from changes group by 2, 3, 4
  on conflict (tenant_id, hour, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), recorded as (
  insert into alert_dispositions
    (tenant_id, alert_id, from_disposition, to_disposition, actor, note, job_id, undoes)
  select $1, alert_id, disposition, becomes, $4::text, $5::text, $6::text, undoes from found
), audited as (
  insert into audit_log (actor, tenant_id, action, before, after)
  select $4::text, $1,
    case when $7::text is null then 'alert.dispositioned' else 'alert.disposition_undone' end,
    jsonb_build_object('alert_id', alert_id, 'disposition', disposition),
    jsonb_build_object('alert_id', alert_id, 'disposition', becomes, 'note', $5::text,
      'job_id', $6::text)
      || case when $7::text is null then '{}' else jsonb_build_object('undo_of', $7::text) end
  from found
)
select count(*) as changed from found`

/**
 * @param change.alerts `undoes`: the change in the alert's history that is undone
 * @param change.undoOf the job whose changes are undone, null for other changes
 * @returns how many changed; those that have the disposition already do not
 */
export async function setDispositions(
  tx: Queryable,
  change: {
    tenantId: string
    alerts: readonly { alertId: string; disposition: Disposition; undoes?: number }[]
    note: string | null
    actor: string
    jobId: string
    undoOf: string | null
  },
): Promise<number> {
  const { tenantId, alerts, actor, note, jobId, undoOf } = change
  const alertIds = alerts.map(({ alertId }) => alertId)
  const dispositions = alerts.map(({ disposition }) => disposition)
  const undoes = alerts.map((one) => one.undoes ?? null)
  const { rows } = await tx.query<{ changed: number }>({
    name: 'set-dispositions',
    text: moveAllSql,
    values: [tenantId, alertIds, dispositions, actor, note, jobId, undoOf, undoes],
  })
  return rows[0]!.changed
}
