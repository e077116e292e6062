/**
 * Handing deliveries out: what is due is claimed by one process at a time, with a claim that runs
 * out, so that a process's death only delays. Each tenant's first attempts and retries are queues
 * of their own and only their fronts are touched, so no backlog is in anybody else's way. A webhook
 * that is held has nothing claimed, and after its hold one delivery at a time, as a probe.
 */
import type { Environment } from '#shared/core/tenants/credentials.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { CurrentWebhook } from './delivery-store.ts'
import { secretLeaseMs } from './webhook-secret-lease.ts'
import type { WebhookState } from './webhook-store.ts'

/** One queue of a tenant: its first attempts, or its retries. */
export type Lane = { tenantId: string; retry: boolean }

/** A lane with how long its oldest delivery has been due, in ms. */
export type DueLane = Lane & { overdueMs: number }

export type ClaimedDelivery = {
  tenantId: string
  deliveryId: string
  /** Proof of the claim, for `recordOutcomes`. */
  claim: string
  event: string
  /** The bytes that every attempt sends. */
  body: Buffer
  /** Attempts recorded so far, and how many of them were made before its last replay. */
  attempts: number
  attemptsBefore: number
  /** How long ago it was created, in ms, by the database's clock. */
  ageMs: number
  /** Whether it is the one delivery that shows how a held webhook is doing. */
  probe: boolean
  /** The webhook at the time of the claim. */
  webhook: CurrentWebhook
  /** How old that reading may be, in ms, when its secret signs. */
  secretLeaseMs: number
}

/** A tenant that waits: suspended, or its webhook paused. Its deliveries are not even looked at. */
const isServed = `t.status = 'active' and coalesce(w.state, 'off') <> 'paused'`

/**
 * Waiting, and not in the hands of a process whose claim still lasts. Every time here is compared
 * with the database's clock: the clocks of the processes differ.
 */
const isFree = (alias: string) =>
  `${alias}.state = 'pending' and (${alias}.claimed_by is null
    or ($4 and coalesce(${alias}.claimed_until, ${alias}.due_at) <= now()))`

const claimSql = `
with asked as materialized (
  select a.tenant_id, a.retry, a.room, w.state = 'on' and w.circuit_open_until is not null as held
  from unnest($1::text[], $2::boolean[], $3::integer[]) as a (tenant_id, retry, room)
  join tenants t using (tenant_id)
  left join webhooks w using (tenant_id)
  where ${isServed}
), probed as materialized (
  select tenant_id from webhooks
  where tenant_id in (select tenant_id from asked where held) and circuit_open_until <= now()
  for update skip locked
), picked as (
  select d.delivery_id, false as probe
  from asked
  cross join lateral (
    select due.delivery_id from deliveries as due
    where due.tenant_id = asked.tenant_id and (due.attempts > 0) = asked.retry
      and due.due_at <= now() and ${isFree('due')}
    order by due.due_at
    limit asked.room
    for update skip locked
  ) as d
  where asked.held is not true
  union all
  select d.delivery_id, true
  from probed
  cross join lateral (
    select due.delivery_id from deliveries as due
    where due.tenant_id = probed.tenant_id and due.due_at <= now() and ${isFree('due')}
    order by (due.attempts > 0), due.due_at
    limit 1
    for update skip locked
  ) as d
), claimed as (
  update deliveries as d set claimed_by = $5,
    claimed_until = now() + $6 * interval '1 millisecond'
  from picked where d.delivery_id = picked.delivery_id
  returning d.tenant_id, d.delivery_id, d.event, d.body, d.attempts, d.attempts_before_replay,
    d.claimed_until, (extract(epoch from now() - d.created_at) * 1000)::float8 as age_ms,
    picked.probe
), ticket as (
  update webhooks as w set circuit_open_until = claimed.claimed_until
  from claimed where claimed.probe and w.tenant_id = claimed.tenant_id
)
select c.*, t.environment, coalesce(w.state, 'off') as state, w.url, s.sealed,
  (select ${secretLeaseMs} from webhook_secret_lease) as secret_lease_ms
from claimed as c
join tenants t using (tenant_id)
left join webhooks w using (tenant_id)
left join tenant_secrets s
  on s.tenant_id = c.tenant_id and s.kind = 'webhook' and s.state = 'active'`

/**
 * Settings of the delivery process's sessions. Every one of its statements looks rows up by an
 * index and in its order, so each is planned once and for good: a plan made when the table was
 * small would otherwise walk it when it no longer is.
 */
export const deliverySession = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
} as const

type ClaimedRow = {
  tenant_id: string
  delivery_id: string
  event: string
  body: Buffer
  attempts: number
  attempts_before_replay: number
  age_ms: number
  probe: boolean
  environment: Environment
  state: WebhookState
  url: string | null
  sealed: string | null
  secret_lease_ms: number
}

export type ClaimRequest = {
  /** Lanes, each with how many deliveries of it are wanted at most. */
  asks: readonly (Lane & { room: number })[]
  /** Unique to this request: it is what proves the claim. */
  claim: string
  claimMs: number
  /** Also take deliveries whose claim ran out. */
  takeOver: boolean
}

/** Claims from the fronts of lanes; see `DeliveryStore`. */
export async function claimDeliveries(
  db: Queryable,
  options: ClaimRequest,
): Promise<ClaimedDelivery[]> {
  const { asks, claim, claimMs } = options
  const { rows } = await db.query<ClaimedRow>({
    name: 'claim-due',
    text: claimSql,
    values: [
      asks.map((ask) => ask.tenantId),
      asks.map((ask) => ask.retry),
      asks.map((ask) => ask.room),
      options.takeOver,
      claim,
      claimMs,
    ],
  })
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    deliveryId: row.delivery_id,
    claim,
    event: row.event,
    body: row.body,
    attempts: row.attempts,
    attemptsBefore: row.attempts_before_replay,
    ageMs: row.age_ms,
    probe: row.probe,
    webhook: {
      environment: row.environment,
      suspended: false,
      state: row.state,
      url: row.url,
      sealedSecret: row.sealed,
    },
    secretLeaseMs: row.secret_lease_ms,
  }))
}

/**
 * Steps from lane to lane through the index and looks at each one's front alone: the cost follows
 * the number of lanes, not of deliveries.
 */
const dueLanesSql = `
with recursive lanes as (
  (select tenant_id, (attempts > 0) as retry from deliveries
   where state = 'pending'
   order by tenant_id, (attempts > 0) limit 1)
  union all
  select following.tenant_id, following.retry
  from lanes cross join lateral (
    select tenant_id, (attempts > 0) as retry from deliveries
    where state = 'pending'
      and (tenant_id, (attempts > 0)) > (lanes.tenant_id, lanes.retry)
    order by tenant_id, (attempts > 0) limit 1
  ) as following
)
select lanes.tenant_id, lanes.retry,
  (extract(epoch from now() - front.due_at) * 1000)::float8 as overdue_ms
from lanes
cross join lateral (
  select due_at from deliveries
  where tenant_id = lanes.tenant_id and (attempts > 0) = lanes.retry
    and state = 'pending'
    and (claimed_by is null or coalesce(claimed_until, due_at) <= now())
  order by due_at limit 1
) as front
join tenants t using (tenant_id)
left join webhooks w using (tenant_id)
where front.due_at <= now() and ${isServed}
  and not coalesce(w.state = 'on' and w.circuit_open_until > now(), false)`

/** Lanes with something due; see `DeliveryStore`. */
export async function findDueLanes(db: Queryable): Promise<DueLane[]> {
  const { rows } = await db.query<{ tenant_id: string; retry: boolean; overdue_ms: number }>({
    name: 'due-lanes',
    text: dueLanesSql,
  })
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    retry: row.retry,
    overdueMs: row.overdue_ms,
  }))
}

/** How many deliveries are due; see `DeliveryStore`. */
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
