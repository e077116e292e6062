/**
 * Handing deliveries out: what is due is claimed by one process at a time, with a claim that runs
 * out, so that a process's death only delays. Each tenant's first attempts and retries are queues
 * of their own and only their fronts are touched, so no backlog is in anybody else's way.
 */
import type { Environment } from '#shared/core/credentials.ts'
import type { Queryable } from './postgres.ts'

/** One queue of a tenant: its first attempts, or its retries. */
export type Lane = { tenantId: string; retry: boolean }

export type ClaimedDelivery = {
  tenantId: string
  deliveryId: string
  /** Proof of the claim, for `recordOutcomes`. */
  claim: string
  claimedUntilMs: number
  event: string
  /** The bytes that every attempt sends. */
  body: Buffer
  /** Attempts recorded so far. */
  attempts: number
  createdAtMs: number
  environment: Environment
  /** The webhook at the time of the claim; null when it is off. */
  url: string | null
}

/**
 * A first attempt may be claimed this early: its due time was written by another machine's clock.
 */
const clockSkewMs = 1_000

/** A tenant that waits: suspended, or its webhook paused. Its deliveries are not even looked at. */
const isServed = `t.status = 'active' and coalesce(w.state, 'off') <> 'paused'`

const claimSql = `
with asked as (
  select a.tenant_id, a.retry, a.room
  from unnest($1::text[], $2::boolean[], $3::integer[]) as a (tenant_id, retry, room)
  join tenants t using (tenant_id)
  left join webhooks w using (tenant_id)
  where ${isServed}
), picked as (
  select d.delivery_id
  from asked
  cross join lateral (
    select due.delivery_id from deliveries as due
    where due.tenant_id = asked.tenant_id and (due.attempts > 0) = asked.retry
      and due.state in ('pending', 'sending')
      and due.due_at <= case when asked.retry then $4::timestamptz else $5::timestamptz end
      and (due.state = 'pending' or $6)
    order by due.due_at
    limit asked.room
    for update skip locked
  ) as d
), claimed as (
  update deliveries as d set state = 'sending', claimed_by = $7, due_at = $8
  from picked where d.delivery_id = picked.delivery_id
  returning d.tenant_id, d.delivery_id, d.event, d.body, d.attempts, d.created_at
)
select c.*, t.environment, case when w.state = 'on' then w.url end as url
from claimed as c
join tenants t using (tenant_id)
left join webhooks w using (tenant_id)`

type ClaimedRow = {
  tenant_id: string
  delivery_id: string
  event: string
  body: Buffer
  attempts: number
  created_at: Date
  environment: Environment
  url: string | null
}

export type ClaimRequest = {
  /** Lanes, each with how many deliveries of it are wanted at most. */
  asks: readonly (Lane & { room: number })[]
  /** Unique to this request: it is what proves the claim. */
  claim: string
  claimMs: number
  nowMs: number
  /** Also take deliveries whose claim ran out. */
  takeOver: boolean
}

/** Claims from the fronts of lanes; see `DeliveryStore`. */
export async function claimDeliveries(
  db: Queryable,
  options: ClaimRequest,
): Promise<ClaimedDelivery[]> {
  const { asks, claim, nowMs } = options
  const claimedUntilMs = nowMs + options.claimMs
  // Planned anew each time: a plan kept from when the table was small would walk it when it is not.
  const { rows } = await db.query<ClaimedRow>(claimSql, [
    asks.map((ask) => ask.tenantId),
    asks.map((ask) => ask.retry),
    asks.map((ask) => ask.room),
    toTime(nowMs),
    toTime(nowMs + clockSkewMs),
    options.takeOver,
    claim,
    toTime(claimedUntilMs),
  ])
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    deliveryId: row.delivery_id,
    claim,
    claimedUntilMs,
    event: row.event,
    body: row.body,
    attempts: row.attempts,
    createdAtMs: row.created_at.getTime(),
    environment: row.environment,
    url: row.url,
  }))
}

/**
 * Steps from lane to lane through the index and looks at each one's front alone: the cost follows
 * the number of lanes, not of deliveries.
 */
const dueLanesSql = `
with recursive lanes as (
  (select tenant_id, (attempts > 0) as retry from deliveries
   where state in ('pending', 'sending')
   order by tenant_id, (attempts > 0) limit 1)
  union all
  select following.tenant_id, following.retry
  from lanes cross join lateral (
    select tenant_id, (attempts > 0) as retry from deliveries
    where state in ('pending', 'sending')
      and (tenant_id, (attempts > 0)) > (lanes.tenant_id, lanes.retry)
    order by tenant_id, (attempts > 0) limit 1
  ) as following
)
select lanes.tenant_id, lanes.retry, front.due_at
from lanes
cross join lateral (
  select due_at from deliveries
  where tenant_id = lanes.tenant_id and (attempts > 0) = lanes.retry
    and state in ('pending', 'sending')
  order by due_at limit 1
) as front
join tenants t using (tenant_id)
left join webhooks w using (tenant_id)
where front.due_at <= $1 and ${isServed}`

/** Lanes with something due; see `DeliveryStore`. */
export async function findDueLanes(
  db: Queryable,
  nowMs: number,
): Promise<(Lane & { oldestDueAtMs: number })[]> {
  const { rows } = await db.query<{ tenant_id: string; retry: boolean; due_at: Date }>(
    dueLanesSql,
    [toTime(nowMs)],
  )
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    retry: row.retry,
    oldestDueAtMs: row.due_at.getTime(),
  }))
}

/** How many deliveries are due; see `DeliveryStore`. */
export async function countDue(db: Queryable, nowMs: number, upTo = 100_000): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*) as n from (
       select from deliveries
       where state in ('pending', 'sending') and due_at <= $1 limit $2
     ) as due`,
    [toTime(nowMs), upTo],
  )
  return rows[0]!.n
}

const toTime = (ms: number): string => new Date(ms).toISOString()
