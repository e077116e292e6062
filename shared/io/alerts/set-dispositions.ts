/**
 * Changes the dispositions of alerts of a tenant in one statement: the alerts, their counters,
 * their histories and the audit log, one entry for each alert; then the deliveries that tell the
 * tenant. Call it under the lock of the tenant's alerts (alert-lock.ts), which every change of a
 * disposition takes.
 */
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { type Queryable, toTime } from '#shared/io/postgres/postgres.ts'
import { type ChangedDisposition, deliverUpdates } from './deliver-updates.ts'

/**
 * SQL: when an alert changes now. An alert's changes are a millisecond apart at least, whatever the
 * clock does: of two copies the later one is the newer.
 */
export const nextChange = (alias: string): string =>
  `greatest(clock_timestamp()::timestamptz(3),
    greatest(${alias}.created_at, ${alias}.changed_at) + interval '1 millisecond')`

const moveAllSql = `
with found as materialized (
  select a.alert_id, a.disposition, wanted.disposition as becomes, a.action, a.created_at,
    wanted.undoes, coalesce($9::timestamptz, ${nextChange('a')}) as at
  from unnest($2::text[], $3::text[], $8::bigint[]) as wanted (alert_id, disposition, undoes)
  join alerts as a on a.tenant_id = $1::text and a.alert_id = wanted.alert_id
  where a.disposition <> wanted.disposition
), moved as (
  update alerts as a set disposition = found.becomes, changed_at = found.at from found
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
    (tenant_id, alert_id, from_disposition, to_disposition, actor, note, job_id, undoes, at)
  select $1, alert_id, disposition, becomes, $4::text, $5::text, $6::text, undoes, at from found
  returning disposition_id, alert_id
), audited as (
  insert into audit_log (actor, tenant_id, action, before, after)
  select $4::text, $1,
    case when $7::text is null then 'alert.dispositioned' else 'alert.disposition_undone' end,
    jsonb_build_object('alert_id', alert_id, 'disposition', disposition),
    jsonb_build_object('alert_id', alert_id, 'disposition', becomes, 'note', $5::text)
      || case when $6::text is null then '{}' else jsonb_build_object('job_id', $6::text) end
      || case when $7::text is null then '{}' else jsonb_build_object('undo_of', $7::text) end
  from found
)
select recorded.disposition_id, found.alert_id, found.disposition as "from",
  found.becomes as "to", found.at
from found join recorded using (alert_id)`

/**
 * @param change.alerts each once; `undoes`: the change in the alert's history that is undone
 * @param change.jobId the bulk job that does it; null for other changes
 * @param change.undoOf the job whose changes are undone, null for other changes
 * @param change.atMs when, in ms since 1970, in a simulated history; left out, now
 * @returns those that changed; those that have the disposition already do not
 */
export async function setDispositions(
  tx: Queryable,
  change: {
    tenantId: string
    alerts: readonly { alertId: string; disposition: Disposition; undoes?: number }[]
    note: string | null
    actor: string
    jobId: string | null
    undoOf: string | null
    atMs?: number | undefined
  },
): Promise<ChangedDisposition[]> {
  const { tenantId, alerts, actor, note, jobId, undoOf, atMs } = change
  const alertIds = alerts.map(({ alertId }) => alertId)
  const dispositions = alerts.map(({ disposition }) => disposition)
  const undoes = alerts.map((one) => one.undoes ?? null)
  const at = atMs === undefined ? null : toTime(atMs)
  const { rows } = await tx.query<ChangedDisposition>({
    name: 'set-dispositions',
    text: moveAllSql,
    values: [tenantId, alertIds, dispositions, actor, note, jobId, undoOf, undoes, at],
  })
  await deliverUpdates(tx, { tenantId, actor, note, changed: rows })
  return rows
}
