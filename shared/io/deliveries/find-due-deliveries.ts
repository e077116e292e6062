/** Finds the queues that have a delivery due, and counts due deliveries, for the sweep. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type DeliveryQueue, isServed } from './claim-deliveries.ts'

/** A queue with how long its oldest delivery has been due. */
export type DueQueue = DeliveryQueue & { overdueMs: number }

/**
 * A loose index scan: it steps from queue to queue and reads only the front of each. The cost
 * depends on the number of queues, not of deliveries.
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
where front.due_at <= now() and ${isServed}
  and not coalesce(w.state = 'on' and w.circuit_open_until > now(), false)`

/** Finds the queues that have a delivery due, except those of tenants that are not served. */
export async function findDueQueues(db: Queryable): Promise<DueQueue[]> {
  const { rows } = await db.query<{ tenant_id: string; retry: boolean; overdue_ms: number }>({
    name: 'due-queues',
    text: dueQueuesSql,
  })
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
