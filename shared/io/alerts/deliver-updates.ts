/**
 * Creates the deliveries of `alert.updated`, for tenants that asked for them, in the transaction of
 * the change of the disposition: neither is there without the other. They are due at once; the
 * sweep of the delivery process finds them.
 */
import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import { toActor } from '#shared/core/alerts/alert-actors.ts'
import type { AlertUpdate, DispositionEntry } from '#shared/core/alerts/alert-schema.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { toUpdateDeliveryId } from '#shared/core/base/ids.ts'
import { alertUpdated } from '#shared/core/deliveries/webhook-events.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { alertColumns, operatorIdOf } from './alert-columns.ts'

/** A disposition that changed. */
export type ChangedDisposition = {
  alert_id: string
  /** Of the change, in the alert's history. */
  disposition_id: number
  from: Disposition
  to: Disposition
  at: Date
}

type Updates = {
  tenantId: string
  actor: string
  note: string | null
  changed: readonly ChangedDisposition[]
}

/** Call it under the lock of the tenant's alerts, after the change. */
export async function deliverUpdates(tx: Queryable, updates: Updates): Promise<void> {
  const { tenantId, actor, changed } = updates
  if (changed.length === 0 || !(await wantsUpdates(tx, tenantId))) return
  const byId = new Map(changed.map((one) => [one.alert_id, one]))
  const { rows } = await tx.query<AlertRow & { actor_id: string | null }>(
    `select ${alertColumns}, ${operatorIdOf('$3')} as actor_id
     from alerts where tenant_id = $1 and alert_id = any($2)`,
    [tenantId, [...byId.keys()], actor],
  )
  const deliveries = rows.map((row) => {
    const change = byId.get(row.alert_id)!
    const body: AlertUpdate = {
      ...toAlert(row),
      details: { change: toEntry(change, { ...updates, actorId: row.actor_id }) },
    }
    return { id: toUpdateDeliveryId(row.alert_id, change.disposition_id), body }
  })
  await tx.query(
    `insert into deliveries (tenant_id, delivery_id, alert_id, event, body)
     select $1, delivery_id, alert_id, '${alertUpdated}', convert_to(body, 'UTF8')
     from unnest($2::text[], $3::text[], $4::text[]) as updates (delivery_id, alert_id, body)`,
    [
      tenantId,
      deliveries.map(({ id }) => id),
      deliveries.map(({ body }) => body.alert_id),
      deliveries.map(({ body }) => JSON.stringify(body)),
    ],
  )
}

const toEntry = (
  { at, from, to }: ChangedDisposition,
  { actor, actorId, note }: Pick<Updates, 'actor' | 'note'> & { actorId: string | null },
): DispositionEntry => ({ at: at.toISOString(), by: toActor(actor, actorId), from, to, note })

async function wantsUpdates(tx: Queryable, tenantId: string): Promise<boolean> {
  const { rows } = await tx.query(
    `select from webhooks where tenant_id = $1 and '${alertUpdated}' = any(events)`,
    [tenantId],
  )
  return rows.length > 0
}
