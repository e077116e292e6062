/**
 * Replays deliveries. A replay keeps the delivery's id, body and attempts and restarts its retry
 * schedule. It runs in parts, so that no lock lasts long, and skips deliveries that are being sent.
 */

import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { replayBatchMax } from '#shared/core/base/limits/deliveries.ts'
import { webhookTest } from '#shared/core/deliveries/webhook-events.ts'
import { alertColumns } from '#shared/io/alerts/alert-columns.ts'
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
const inScope = `d.tenant_id = $1 and d.event <> '${webhookTest}' and d.claimed_by is null
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
 * Replays the deliveries of one alert in any state: as it was raised, and its updates (the newest,
 * of thousands). If retention has removed the first, it is created again with the same id and the
 * present alert.
 * @returns its deliveries, and how many are due now (none while it is being sent); null for no such
 *   alert
 */
export async function replayAlert(
  tx: Queryable,
  options: { tenantId: string; alertId: string },
): Promise<{ deliveryIds: string[]; replayed: number } | null> {
  const { tenantId, alertId } = options
  // Retention, erasure and other replays wait: the alert stays, and its delivery is created once.
  await lockSequences(tx, [tenantId])
  const alert = await findAlert(tx, tenantId, alertId)
  if (alert === null) return null
  const deliveryId = toDeliveryId(alertId)
  await preferKeyLookups(tx)
  const { rows } = await tx.query<{ delivery_id: string; is_free: boolean }>(
    `select delivery_id, claimed_by is null as is_free from deliveries
     where tenant_id = $1 and delivery_id = any(array(
       select delivery_id from deliveries where tenant_id = $1 and alert_id = $2
       order by created_at desc limit ${replayBatchMax}) || $3::text)
     order by delivery_id for update`,
    [tenantId, alertId, deliveryId],
  )
  const free = rows.filter((row) => row.is_free).map((row) => row.delivery_id)
  await tx.query(
    `update deliveries as d ${replaySet} where d.tenant_id = $1 and d.delivery_id = any($2)`,
    [tenantId, free],
  )
  const made = rows.every((row) => row.delivery_id !== deliveryId)
  if (made) {
    await tx.query(
      `insert into deliveries (tenant_id, delivery_id, alert_id, body, due_at)
       values ($1, $2, $3, convert_to($4, 'UTF8'), now())`,
      [tenantId, deliveryId, alertId, JSON.stringify(alert)],
    )
  }
  const known = rows.map((row) => row.delivery_id).filter((id) => id !== deliveryId)
  return { deliveryIds: [deliveryId, ...known], replayed: free.length + (made ? 1 : 0) }
}

async function findAlert(tx: Queryable, tenantId: string, alertId: string): Promise<Alert | null> {
  if (!canBeStored(alertId)) return null
  const { rows } = await tx.query<AlertRow>(
    `select ${alertColumns} from alerts where tenant_id = $1 and alert_id = $2`,
    [tenantId, alertId],
  )
  return rows[0] === undefined ? null : toAlert(rows[0])
}
