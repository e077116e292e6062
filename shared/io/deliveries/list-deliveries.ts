/** Lists deliveries for operators, each with all its attempts. */
import type { Delivery } from '#shared/core/deliveries/delivery-schema.ts'
import type { DeliveryState } from '#shared/core/deliveries/delivery-states.ts'
import type { DeliveryEvent } from '#shared/core/deliveries/webhook-events.ts'
import { canBeStored } from '#shared/io/alerts/find-alert.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** The last delivery of a page. */
export type DeliveryPosition = { createdAtUs: number; deliveryId: string }

export type DeliveryQuery = {
  tenantId: string
  state?: DeliveryState | undefined
  alertId?: string | undefined
  event?: DeliveryEvent | undefined
  limit: number
  /** Continues after this delivery; starts with the newest when left out. */
  after?: DeliveryPosition | undefined
}

export type DeliveryPage = {
  deliveries: Delivery[]
  /** `after` of the next page; null on the last one. */
  next: DeliveryPosition | null
}

const conditions: Record<DeliveryState, string> = {
  pending: `d.state = 'pending' and d.claimed_by is null`,
  sending: `d.state = 'pending' and d.claimed_by is not null`,
  delivered: `d.state = 'delivered'`,
  failed: `d.state = 'failed'`,
  skipped: `d.state = 'skipped'`,
}

/** SQL: microseconds, because many deliveries share a millisecond. */
export const createdAtUs = '(extract(epoch from d.created_at) * 1000000)::bigint'
/** SQL: a parameter of microseconds since 1970 as an instant. */
export const instantOf = (parameter: string) =>
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
    from delivery_attempts as a
    where a.delivery_id = d.delivery_id and a.delivery_created_at = d.created_at), '[]') as attempts
from deliveries as d`

type ViewRow = Omit<Delivery, 'created_at' | 'due_at' | 'ended_at'> & {
  created_at: Date
  due_at: Date
  ended_at: Date | null
  created_at_us: number
}

function toView({ created_at_us: _, ...row }: ViewRow): Delivery {
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
  if (query.event !== undefined) where.push(`d.event = ${bind(query.event)}`)
  if (query.alertId !== undefined) {
    if (!canBeStored(query.alertId)) return { deliveries: [], next: null }
    where.push(`d.alert_id = ${bind(query.alertId)}`)
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

/** Finds a tenant's deliveries by their ids, in the order of the ids. */
export async function findDeliveries(
  db: Queryable,
  tenantId: string,
  deliveryIds: readonly string[],
): Promise<Delivery[]> {
  const ids = deliveryIds.filter(canBeStored)
  const { rows } = await db.query<ViewRow>(
    `${viewSql} where d.delivery_id = any($2) and d.tenant_id = $1
     order by array_position($2, d.delivery_id)`,
    [tenantId, ids],
  )
  return rows.map(toView)
}

/** The body that every attempt of a delivery sends. @returns null when there is no such delivery */
export async function findDeliveryBody(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
): Promise<{ event: string; body: Buffer } | null> {
  if (!canBeStored(deliveryId)) return null
  const { rows } = await db.query<{ event: string; body: Buffer }>(
    'select event, body from deliveries where tenant_id = $1 and delivery_id = $2',
    [tenantId, deliveryId],
  )
  return rows[0] ?? null
}
