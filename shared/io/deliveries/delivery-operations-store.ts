/**
 * Deliveries as operators see and handle them: lists with every attempt, sending again, and test
 * events. A replay keeps the delivery's id, bytes and attempts and begins its schedule anew; it is
 * made in parts, so that no lock is held long, and what is being sent at the moment is left alone.
 */
import type { Alert } from '#shared/core/alerts/alert-rules.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { replayedAtOnceMax } from '#shared/core/deliveries/delivery-limits.ts'
import { webhookTestEvent } from '#shared/core/deliveries/test-event.ts'
import {
  type AlertRow,
  alertColumns,
  canBeStored,
  toAlertOfRow,
} from '#shared/io/alerts/alert-listing-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** As operators see them: `sending` is whatever a delivery process has claimed. */
export const deliveryStates = ['pending', 'sending', 'delivered', 'failed', 'skipped'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** A delivery as operators see it. Times are ISO-8601. */
export type DeliveryView = {
  delivery_id: string
  tenant_id: string
  /** Null for a test event. */
  alert_id: string | null
  event: string
  state: DeliveryState
  /** Why it ended without being delivered. */
  reason: string | null
  created_at: string
  /** When the next attempt is due; null when it has ended. */
  due_at: string | null
  ended_at: string | null
  attempts: {
    attempt: number
    at: string
    duration_ms: number
    status: number | null
    error_kind: string | null
    error: string | null
    address: string | null
    answer: string | null
  }[]
}

/** Where a page ended. The moment is in microseconds: many deliveries share a millisecond. */
export type DeliveryPosition = { createdAtUs: number; deliveryId: string }

export type DeliveryQuery = {
  tenantId: string
  state?: DeliveryState | undefined
  alertId?: string | undefined
  limit: number
  /** Deliveries after this one; left out begins with the newest. */
  after?: DeliveryPosition | undefined
}

export type DeliveryPage = {
  deliveries: DeliveryView[]
  /** What `after` is for the next page, or null when this one is the last. */
  next: DeliveryPosition | null
}

const conditions: Record<DeliveryState, string> = {
  pending: `d.state = 'pending' and d.claimed_by is null`,
  sending: `d.state = 'pending' and d.claimed_by is not null`,
  delivered: `d.state = 'delivered'`,
  failed: `d.state = 'failed'`,
  skipped: `d.state = 'skipped'`,
}

const createdAtUs = '(extract(epoch from d.created_at) * 1000000)::bigint'
/** A parameter of microseconds since 1970 as the instant that it is. */
const instantOf = (parameter: string) =>
  `(timestamptz 'epoch' + ${parameter}::float8 * interval '1 microsecond')`

const viewSql = `
select d.delivery_id, d.tenant_id, d.alert_id, d.event, d.reason, d.created_at, d.due_at,
  d.ended_at, case when d.claimed_by is null then d.state else 'sending' end as state,
  ${createdAtUs} as created_at_us,
  coalesce((
    select json_agg(json_build_object(
      'attempt', a.attempt, 'at', a.at, 'duration_ms', a.duration_ms, 'status', a.status,
      'error_kind', a.error_kind, 'error', a.error, 'address', a.address, 'answer', a.answer)
      order by a.attempt)
    from delivery_attempts as a where a.delivery_id = d.delivery_id), '[]') as attempts
from deliveries as d`

type ViewRow = Omit<DeliveryView, 'created_at' | 'due_at' | 'ended_at'> & {
  created_at: Date
  due_at: Date
  ended_at: Date | null
  created_at_us: number
}

function toView({ created_at_us: _, ...row }: ViewRow): DeliveryView {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    due_at: row.ended_at === null ? row.due_at.toISOString() : null,
    ended_at: row.ended_at?.toISOString() ?? null,
    attempts: row.attempts.map((one) => ({ ...one, at: new Date(one.at).toISOString() })),
  }
}

/** One page of a tenant's deliveries, newest first, each with all its attempts. */
export async function listDeliveries(db: Queryable, query: DeliveryQuery): Promise<DeliveryPage> {
  const values: unknown[] = [query.tenantId]
  const bind = (value: unknown): string => `$${values.push(value)}`
  const where = ['d.tenant_id = $1']
  if (query.state !== undefined) where.push(conditions[query.state])
  // An alert's delivery is found by its id, which follows from the alert's.
  if (query.alertId !== undefined) {
    where.push(`d.delivery_id = ${bind(toDeliveryId(query.alertId))}`)
  }
  if (query.after !== undefined) {
    const { createdAtUs: us, deliveryId } = query.after
    where.push(`(d.created_at, d.delivery_id) < (${instantOf(bind(us))}, ${bind(deliveryId)})`)
  }
  const { rows } = await db.query<ViewRow>(
    `${viewSql} where ${where.join(' and ')}
     order by d.created_at desc, d.delivery_id desc limit ${bind(query.limit + 1)}`,
    values,
  )
  const page = rows.slice(0, query.limit)
  const last = page.at(-1)
  const more = rows.length > page.length && last !== undefined
  return {
    deliveries: page.map(toView),
    next: more ? { createdAtUs: last.created_at_us, deliveryId: last.delivery_id } : null,
  }
}

/** Some of a tenant's deliveries by their ids, in that order; those that are not there left out. */
export async function findDeliveries(
  db: Queryable,
  tenantId: string,
  deliveryIds: readonly string[],
): Promise<DeliveryView[]> {
  const ids = deliveryIds.filter(canBeStored)
  const { rows } = await db.query<ViewRow>(
    `${viewSql} where d.delivery_id = any($2) and d.tenant_id = $1
     order by array_position($2, d.delivery_id)`,
    [tenantId, ids],
  )
  return rows.map(toView)
}

/**
 * What is sent again: what has ended is due now, with its schedule anew; what waits is due now.
 * Least of the two times: what is overdue keeps its place in the queue.
 */
const replaySet = `
  set attempts_before_replay = case when d.ended_at is null then
    d.attempts_before_replay else d.attempts end,
    due_at = case when d.ended_at is null then least(d.due_at, now()) else now() end,
    state = 'pending', ended_at = null, reason = null`

/** Which deliveries: those created since an instant, those that were not delivered, or both. */
export type ReplayScope = { sinceMs: number | null; onlyFailed: boolean }

/**
 * Where a replay has got to, and how far it goes: it ends before what comes into being under it.
 */
export type ReplayProgress = { untilUs: number; after: DeliveryPosition | null }

/** Begins a replay at the database's own clock, which dates the deliveries. */
export async function beginReplay(db: Queryable): Promise<ReplayProgress> {
  const { rows } = await db.query<{ us: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000000)::bigint as us',
  )
  return { untilUs: rows[0]!.us, after: null }
}

/**
 * Replays the next part of a tenant's deliveries, oldest first. Test events are not among them.
 * @returns the ids, and how to go on; no ids mean that nothing is left
 */
export async function replayNext(
  db: Queryable,
  options: { tenantId: string; scope: ReplayScope; progress: ReplayProgress },
): Promise<{ deliveryIds: string[]; progress: ReplayProgress }> {
  const { tenantId, scope, progress } = options
  const after = progress.after ?? { createdAtUs: (scope.sinceMs ?? 0) * 1_000, deliveryId: '' }
  const { rows } = await db.query<{ delivery_id: string; created_at_us: number }>(
    `with picked as (
       select d.delivery_id from deliveries as d
       where d.tenant_id = $1 and d.event <> '${webhookTestEvent}' and d.claimed_by is null
         and (d.state in ('failed', 'skipped') or not $2)
         and (d.created_at, d.delivery_id) > (${instantOf('$3')}, $4)
         and d.created_at <= ${instantOf('$5')}
       order by d.created_at, d.delivery_id
       limit ${replayedAtOnceMax}
     ), locked as materialized (
       select d.delivery_id from deliveries as d join picked using (delivery_id)
       where d.claimed_by is null
       order by d.delivery_id for update of d
     ), replayed as (
       update deliveries as d ${replaySet}
       from locked where d.delivery_id = locked.delivery_id
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
 * Replays the delivery of one alert, whatever became of it. Where retention has removed it, it is
 * made anew with the same id and the alert as it is now.
 * @returns its id, whether it is due now (not when it is being sent), or null for no such alert
 */
export async function replayAlert(
  tx: Queryable,
  options: { tenantId: string; alertId: string },
): Promise<{ deliveryId: string; replayed: boolean } | null> {
  const { tenantId, alertId } = options
  const alert = await lockAlert(tx, tenantId, alertId)
  if (alert === null) return null
  const deliveryId = toDeliveryId(alertId)
  const made = await tx.query(
    `insert into deliveries (tenant_id, delivery_id, alert_id, body, due_at)
     values ($1, $2, $3, convert_to($4, 'UTF8'), now()) on conflict (delivery_id) do nothing`,
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

/** The alert, held against an erasure of it. */
async function lockAlert(tx: Queryable, tenantId: string, alertId: string): Promise<Alert | null> {
  if (!canBeStored(alertId)) return null
  const { rows } = await tx.query<AlertRow>(
    `select ${alertColumns} from alerts where tenant_id = $1 and alert_id = $2 for key share`,
    [tenantId, alertId],
  )
  return rows[0] === undefined ? null : toAlertOfRow(rows[0])
}

/**
 * Inserts the delivery of a test event, due before every first attempt that the tenant has waiting.
 * @param event.body the bytes that are sent
 */
export async function insertTestEvent(
  tx: Queryable,
  event: { tenantId: string; deliveryId: string; body: string },
): Promise<void> {
  await tx.query(
    // "is false", since that is how Postgres sees the index of the queues in it.
    `insert into deliveries (tenant_id, delivery_id, event, body, due_at)
     values ($1, $2, '${webhookTestEvent}', convert_to($3, 'UTF8'), least(now(), (
       select due_at - interval '1 millisecond' from deliveries
       where tenant_id = $1 and (attempts > 0) is false and state = 'pending'
       order by due_at limit 1)))`,
    [event.tenantId, event.deliveryId, event.body],
  )
}
