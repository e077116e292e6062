/**
 * Changes the disposition of many alerts of a tenant in one statement: the alerts, their counters,
 * their histories and the audit log, one entry for each alert. Call it under the lock of the
 * tenant's alerts (alert-lock.ts), which every change of a disposition takes.
 */
import type { Disposition } from '#shared/core/alerts/alert-rules.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

const moveAllSql = `
with found as (
  select alert_id, disposition, action, created_at from alerts
  where tenant_id = $1::text and alert_id = any($2::text[]) and disposition <> $3::text
), moved as (
  update alerts as a set disposition = $3::text, changed_at = clock_timestamp() from found
  where a.tenant_id = $1 and a.alert_id = found.alert_id
), changes as (
  select created_at, action, disposition, -1 as change from found
  union all select created_at, action, $3::text, 1 from found
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
    (tenant_id, alert_id, from_disposition, to_disposition, actor, note)
  select $1, alert_id, disposition, $3::text, $4::text, $5::text from found
), audited as (
  insert into audit_log (actor, tenant_id, action, before, after)
  select $4::text, $1, 'alert.dispositioned',
    jsonb_build_object('alert_id', alert_id, 'disposition', disposition),
    jsonb_build_object('alert_id', alert_id, 'disposition', $3::text, 'note', $5::text,
      'job_id', $6::text)
  from found
)
select count(*) as changed from found`

/** @returns how many changed; those that have the disposition already do not */
export async function setDispositions(
  tx: Queryable,
  change: {
    tenantId: string
    alertIds: readonly string[]
    disposition: Disposition
    note: string | null
    actor: string
    jobId: string
  },
): Promise<number> {
  const { tenantId, alertIds, disposition, actor, note, jobId } = change
  const { rows } = await tx.query<{ changed: number }>({
    name: 'set-dispositions',
    text: moveAllSql,
    values: [tenantId, alertIds, disposition, actor, note, jobId],
  })
  return rows[0]!.changed
}
