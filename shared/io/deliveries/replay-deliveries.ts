/**
 * Replays deliveries. A replay keeps the delivery's id, body and attempts and restarts its retry
 * schedule. It runs in parts, so that no lock lasts long, and skips deliveries that are being sent.
 */

import { type AlertRow, alertColumns, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { replayBatchMax } from '#shared/core/base/limits/deliveries.ts'
import { webhookTestEvent } from '#shared/core/deliveries/test-event.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { canBeStored } from '#shared/io/alerts/find-alert.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { preferKeyLookups } from './key-lookups.ts'
import { createdAtUs, type DeliveryPosition, instantOf } from './list-deliveries.ts'

/**
 * SQL: an ended delivery is due now and starts its retry schedule again; a pending one is due now.
 * A delivery that is overdue keeps its place in the queue.
 */
const replaySet = `
  set attempts_before_replay =
      case when d.ended_at is null then d.attempts_before_replay else d.attempts end,
    due_at = case when d.ended_at is null then least(d.due_at, now()) else now() end,
    state = 'pending', ended_at = null, reason = null`

/** Which deliveries to replay. */
export type ReplayScope = { sinceMs: number | null; onlyFailed: boolean }

/** SQL: a delivery that a replay of a scope takes; `$1` is the tenant, `$2` whether only failed. */
const inScope = `d.tenant_id = $1 and d.event <> '${webhookTestEvent}' and d.claimed_by is null
  and (d.state in ('failed', 'skipped') or not $2)`

/** Counts the deliveries that a replay of the scope would send if it began now. */
export async function countReplayable(
  db: Queryable,
  { tenantId, scope }: { tenantId: string; scope: ReplayScope },
): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*)::int as count from deliveries as d
     where ${inScope} and d.created_at >= ${instantOf('$3')}`,
    [tenantId, scope.onlyFailed, (scope.sinceMs ?? 0) * 1_000],
  )
  return rows[0]!.count
}

/** The progress of a replay. It ends at deliveries that were created after it began. */
type ReplayProgress = { untilUs: number; after: DeliveryPosition | null }

/** Begins a replay at the database's clock, which also dates the deliveries. */
export async function beginReplay(db: Queryable): Promise<ReplayProgress> {
  const { rows } = await db.query<{ us: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000000)::bigint as us',
  )
  return { untilUs: rows[0]!.us, after: null }
}

/**
 * Replays the next part of a tenant's deliveries, oldest first, except test events.
 * @returns the ids and the progress; no ids means that nothing is left
 */
export async function replayNext(
  tx: Queryable,
  options: { tenantId: string; scope: ReplayScope; progress: ReplayProgress },
): Promise<{ deliveryIds: string[]; progress: ReplayProgress }> {
  const { tenantId, scope, progress } = options
  const after = progress.after ?? { createdAtUs: (scope.sinceMs ?? 0) * 1_000, deliveryId: '' }
  await preferKeyLookups(tx)
  const { rows } = await tx.query<{ delivery_id: string; created_at_us: number }>(
    `with picked as (
       select d.delivery_id, d.created_at from deliveries as d
       where ${inScope}
         and (d.created_at, d.delivery_id) > (${instantOf('$3')}, $4)
         and d.created_at <= ${instantOf('$5')}
       order by d.created_at, d.delivery_id
       limit ${replayBatchMax}
     ), locked as materialized (
       select d.delivery_id, d.created_at
       from deliveries as d join picked using (delivery_id, created_at)
       where d.claimed_by is null
       order by d.delivery_id for update of d
     ), replayed as (
       update deliveries as d ${replaySet}
       from locked where d.delivery_id = locked.delivery_id and d.created_at = locked.created_at
       returning d.delivery_id, d.created_at
     )
     select d.delivery_id, ${createdAtUs} as created_at_us from replayed as d
     order by d.created_at, d.delivery_id`,
    [...[tenantId, scope.onlyFailed, after.createdAtUs, after.deliveryId, progress.untilUs]],
  )
  const last = rows.at(-1)
  const position =
    last === undefined ? after : { createdAtUs: last.created_at_us, deliveryId: last.delivery_id }
  return {
    deliveryIds: rows.map((row) => row.delivery_id),
    progress: { untilUs: progress.untilUs, after: position },
  }
}

/**
 * Replays the delivery of one alert in any state. If retention has removed it, it is created again
 * with the same id and the present alert.
 * @returns its id and whether it is due now (not while it is being sent); null for no such alert
 */
export async function replayAlert(
  tx: Queryable,
  options: { tenantId: string; alertId: string },
): Promise<{ deliveryId: string; replayed: boolean } | null> {
  const { tenantId, alertId } = options
  // Retention, erasure and other replays wait: the alert stays, and its delivery is created once.
  await lockSequences(tx, [tenantId])
  const alert = await findAlert(tx, tenantId, alertId)
  if (alert === null) return null
  const deliveryId = toDeliveryId(alertId)
  const made = await tx.query(
    `insert into deliveries (tenant_id, delivery_id, alert_id, body, due_at)
     select $1, $2, $3, convert_to($4, 'UTF8'), now()
     where not exists (select from deliveries as d where d.delivery_id = $2)`,
    [tenantId, deliveryId, alertId, JSON.stringify(alert)],
  )
  if (made.rowCount === 1) return { deliveryId, replayed: true }
  const { rowCount } = await tx.query(
    `update deliveries as d ${replaySet}
     where d.delivery_id = $2 and d.tenant_id = $1 and d.claimed_by is null`,
    [tenantId, deliveryId],
  )
  return { deliveryId, replayed: rowCount === 1 }
}

async function findAlert(tx: Queryable, tenantId: string, alertId: string): Promise<Alert | null> {
  if (!canBeStored(alertId)) return null
  const { rows } = await tx.query<AlertRow>(
    `select ${alertColumns} from alerts where tenant_id = $1 and alert_id = $2`,
    [tenantId, alertId],
  )
  return rows[0] === undefined ? null : toAlert(rows[0])
}
