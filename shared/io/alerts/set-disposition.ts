/**
 * Sets the disposition of an alert, or of a list of alerts. The alerts, their counters, their
 * histories, the audit log and the deliveries that tell the tenant change in one transaction, so
 * every total is always exact.
 */

import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert, ListedOutcome } from '#shared/core/alerts/alert-schema.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { invalidKey, Problem } from '#shared/core/http/problem.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import { lockActiveKey } from '#shared/io/api-keys/api-key-store.ts'
import { claimByKey } from '#shared/io/approvals/claim-by-key.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'
import { alertColumns } from './alert-columns.ts'
import { lockSequences } from './alert-lock.ts'
import { canBeStored } from './find-alert.ts'
import { setDispositions } from './set-dispositions.ts'

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
    if (change.keyHash !== undefined && row.disposition !== change.disposition) {
      const { keyHash, actor } = change
      await claimByKey(tx, { kind: 'bulk', alerts: 1, tenantId: row.tenant_id, keyHash, actor })
    }
    const { disposition, actor, note, atMs, expected = row.disposition } = change
    if (row.disposition !== disposition && row.disposition !== expected) {
      throw await toConflict(tx, row)
    }
    const [changed] = await setDispositions(tx, {
      tenantId: row.tenant_id,
      alerts: [{ alertId: row.alert_id, disposition }],
      actor,
      note,
      atMs,
      jobId: null,
      undoOf: null,
    })
    return toAlert({ ...row, disposition, changed_at: changed?.at ?? row.changed_at })
  })
}

/** A change of many alerts of a tenant by one of its keys. */
export type ListedChange = {
  tenantId: string
  alertIds: readonly string[]
  disposition: Disposition
  note: string | null
  actor: string
  keyHash: Buffer
}

/**
 * Sets the disposition of many alerts in one transaction: all of those that exist, or none.
 * @returns what happened to each, in the order of the ids
 * @throws PostgresUnavailableError, Problem unauthorized when the API key is no longer active
 */
export function setListedDispositions(
  postgres: Session,
  { tenantId, alertIds, disposition, note, actor, keyHash }: ListedChange,
): Promise<ListedOutcome[]> {
  return postgres.transaction(async (tx) => {
    await lockSequences(tx, [tenantId])
    // After the wait for the lock, since the key can be removed during it.
    if (!(await lockActiveKey(tx, keyHash))) throw invalidKey()
    const { rows } = await tx.query<{ alert_id: string; disposition: Disposition }>(
      'select alert_id, disposition from alerts where tenant_id = $1 and alert_id = any($2)',
      [tenantId, alertIds.filter(canBeStored)],
    )
    const known = new Set(rows.map((row) => row.alert_id))
    const alerts = rows.filter((row) => row.disposition !== disposition).length
    if (alerts > 0) await claimByKey(tx, { kind: 'bulk', alerts, tenantId, keyHash, actor })
    const changed = await setDispositions(tx, {
      tenantId,
      alerts: [...known].map((alertId) => ({ alertId, disposition })),
      actor,
      note,
      jobId: null,
      undoOf: null,
    })
    const moved = new Set(changed.map((one) => one.alert_id))
    return alertIds.map((alertId) => {
      const outcome = moved.has(alertId)
        ? 'changed'
        : known.has(alertId)
          ? 'unchanged'
          : 'not_found'
      return { alert_id: alertId, outcome }
    })
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
