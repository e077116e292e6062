/** Finds the queues that have a delivery due, and counts due deliveries, for the sweep. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type DeliveryQueue, isServed } from './claim-deliveries.ts'

/** A queue with how long its oldest delivery has been due. */
export type DueQueue = DeliveryQueue & { overdueMs: number }

/** SQL: whether a queue's tenant is served, and its webhook's circuit lets something through. */
const isOpen = `${isServed} and not coalesce(w.state = 'on' and w.circuit_open_until > now(), false)`

/** Due deliveries that the sweep reads in the order of their times, before it reads by queue. */
const readMax = 1_000

/**
 * The queues of the deliveries that have been due for longest. With nothing due it reads one entry
 * of an index, however many tenants have deliveries that are not due yet.
 */
const firstDueSql = `
with due as materialized (
  select tenant_id, (attempts > 0) as retry, due_at,
    (claimed_by is null or coalesce(claimed_until, due_at) <= now()) as free
  from deliveries
  where state = 'pending' and due_at <= now()
  order by due_at limit ${readMax}
), open as (
  select q.*, (extract(epoch from now() - q.due_at) * 1000)::float8 as overdue_ms
  from (
    select tenant_id, retry, min(due_at) as due_at from due where free group by tenant_id, retry
  ) as q
  join tenants t using (tenant_id)
  left join webhooks w using (tenant_id)
  where ${isOpen}
)
select seen.n as seen, open.tenant_id, open.retry, open.overdue_ms
from (select count(*) as n from due) as seen left join open on true`

/**
 * A loose index scan: it steps from queue to queue and reads only the front of each. The cost
 * depends on the number of queues, not of deliveries: it is for a large backlog.
 */
const dueQueuesSql = `
with recursive queues as (
  (select tenant_id, (attempts > 0) as retry from deliveries
   where state = 'pending'
   order by tenant_id, (attempts > 0) limit 1)
  union all
  select following.tenant_id, following.retry
  from queues cross join lateral (
    select tenant_id, (attempts > 0) as retry from deliveries
    where state = 'pending'
      and (tenant_id, (attempts > 0)) > (queues.tenant_id, queues.retry)
    order by tenant_id, (attempts > 0) limit 1
  ) as following
)
select queues.tenant_id, queues.retry,
  (extract(epoch from now() - front.due_at) * 1000)::float8 as overdue_ms
from queues
cross join lateral (
  select due_at from deliveries
  where tenant_id = queues.tenant_id and (attempts > 0) = queues.retry
    and state = 'pending'
    and (claimed_by is null or coalesce(claimed_until, due_at) <= now())
  order by due_at limit 1
) as front
join tenants t using (tenant_id)
left join webhooks w using (tenant_id)
where front.due_at <= now() and ${isOpen}`

type DueRow = { tenant_id: string; retry: boolean; overdue_ms: number }

/** Finds the queues that have a delivery due, except those of tenants that are not served. */
export async function findDueQueues(db: Queryable): Promise<DueQueue[]> {
  const first = await db.query<{ seen: number } & (DueRow | { tenant_id: null })>({
    name: 'first-due-queues',
    text: firstDueSql,
  })
  const isAll = first.rows[0]!.seen < readMax
  const rows = isAll
    ? first.rows.filter((row) => row.tenant_id !== null)
    : (await db.query<DueRow>({ name: 'due-queues', text: dueQueuesSql })).rows
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    retry: row.retry,
    overdueMs: row.overdue_ms,
  }))
}

/** Counts the deliveries that are due and not claimed, up to a maximum. */
export async function countDue(db: Queryable, upTo = 100_000): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*) as n from (
       select from deliveries
       where state = 'pending' and due_at <= now()
         and (claimed_by is null or coalesce(claimed_until, due_at) <= now())
       limit $1
     ) as due`,
    [upTo],
  )
  return rows[0]!.n
}
