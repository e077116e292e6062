/**
 * Sets the disposition of an alert. The alert, its counters, its history and the audit log change
 * in one transaction, so every total is always exact.
 */

import { type AlertRow, alertColumns, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { invalidKey, Problem } from '#shared/core/http/problem.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import { lockActiveKey } from '#shared/io/api-keys/api-key-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type Queryable, type Session, toTime } from '#shared/io/postgres/postgres.ts'
import { lockSequences } from './alert-lock.ts'
import { canBeStored } from './find-alert.ts'

export type DispositionChange = {
  alertId: string
  /** The tenants whose alert may be changed; left out, of any tenant. */
  scope?: TenantScope
  disposition: Disposition
  /** What the author last saw; another change since is refused. Left out, nothing is. */
  expected?: Disposition | undefined
  note: string | null
  /** The operator's name, for the audit log. */
  actor: string
  /** The API key of the change: it must be active until the change is done. */
  keyHash?: Buffer
  /** When, in ms since 1970, in a simulated history; left out, now, as in the audit log. */
  atMs?: number
}

/**
 * Sets an alert's disposition. An unchanged disposition records nothing.
 * @returns the present alert, or null when it does not exist
 * @throws PostgresUnavailableError, Problem unauthorized when the API key is no longer active,
 *   Problem alert_changed when the disposition is neither the expected nor the new one
 */
export function setDisposition(
  postgres: Session,
  change: DispositionChange,
): Promise<Alert | null> {
  return postgres.transaction(async (tx) => {
    const row = await lockAlert(tx, change)
    // After the wait for the lock, since the key can be removed during it.
    if (change.keyHash !== undefined && !(await lockActiveKey(tx, change.keyHash))) {
      throw invalidKey()
    }
    if (row === null) return null
    if (row.disposition !== change.disposition) {
      const { expected = row.disposition } = change
      if (row.disposition !== expected) throw await toConflict(tx, row)
      await move(tx, row, change)
    }
    return toAlert({ ...row, disposition: change.disposition })
  })
}

/** The 409 of a change that expected another disposition: which it has, and who set it. */
async function toConflict(tx: Queryable, row: AlertRow): Promise<Problem> {
  const { tenant_id: tenantId, alert_id: alertId, disposition } = row
  const { rows } = await tx.query<{ actor: string | null; assignee: string | null }>(
    `select assignee, (
       select actor from alert_dispositions as d
       where d.tenant_id = a.tenant_id and d.alert_id = a.alert_id
       order by disposition_id desc limit 1) as actor
     from alerts as a where tenant_id = $1 and alert_id = $2`,
    [tenantId, alertId],
  )
  const { actor, assignee } = rows[0]!
  const detail = `${actor ?? 'Another operator'} set it to ${disposition} meanwhile.`
  return new Problem('alert_changed', detail, { present: { disposition, assignee } })
}

/** Locks the tenant's alerts, then the alert. */
export async function lockAlert(
  tx: Queryable,
  { alertId, scope = 'all' }: Pick<DispositionChange, 'alertId' | 'scope'>,
): Promise<AlertRow | null> {
  if (!canBeStored(alertId)) return null
  const owner = await tx.query<{ tenant_id: string }>(
    `select tenant_id from tenants
     where tenant_id = (
       select tenant_id from alerts
       where alert_id = $1 and ($2::text[] is null or tenant_id = any($2)) limit 1
     )`,
    [alertId, toSlugs(scope)],
  )
  if (owner.rows[0] === undefined) return null
  await lockSequences(tx, [owner.rows[0].tenant_id])
  const found = await tx.query<AlertRow>(
    `select ${alertColumns} from alerts where tenant_id = $1 and alert_id = $2 for update`,
    [owner.rows[0].tenant_id, alertId],
  )
  return found.rows[0] ?? null
}

const moveSql = `
with moved as (
  update alerts set disposition = $3, changed_at = coalesce($9::timestamptz, clock_timestamp())
  where tenant_id = $1 and alert_id = $2
), changes (disposition, change) as (
  values ($4::text, -1), ($3::text, 1)
), counted as (
  insert into alert_counts_by_day as counts (tenant_id, day, disposition, decision, alert_count)
  select $1, ($6::timestamptz at time zone 'UTC')::date, disposition, $5, change
  from changes
  on conflict (tenant_id, day, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), counted_by_hour as (
  insert into alert_counts_by_hour as counts (tenant_id, hour, disposition, decision, alert_count)
  select $1, date_bin('1 hour', $6::timestamptz, 'epoch'), disposition, $5, change
  from changes
  on conflict (tenant_id, hour, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
)
insert into alert_dispositions
  (tenant_id, alert_id, from_disposition, to_disposition, actor, note, at)
values ($1, $2, $4, $3, $7, $8, coalesce($9::timestamptz, clock_timestamp()))`

async function move(tx: Queryable, row: AlertRow, change: DispositionChange): Promise<void> {
  await tx.query(moveSql, [
    row.tenant_id,
    row.alert_id,
    change.disposition,
    row.disposition,
    row.action,
    row.created_at.toISOString(),
    change.actor,
    change.note,
    change.atMs === undefined ? null : toTime(change.atMs),
  ])
  const { alert_id, disposition } = row
  await insertAudit(tx, {
    actor: change.actor,
    tenantId: row.tenant_id,
    action: 'alert.dispositioned',
    before: { alert_id, disposition },
    after: { alert_id, disposition: change.disposition, note: change.note },
  })
}
