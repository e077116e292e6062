/**
 * Claims due deliveries for one process at a time. A claim expires, so the death of a process only
 * delays its deliveries. First attempts and retries of each tenant are separate queues, and only
 * the front of a queue is read, so no backlog is in another tenant's way. A webhook with an open
 * circuit has nothing claimed until its next half-open probe, which is a single delivery.
 */
import type { Environment } from '#shared/core/tenants/credentials.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { CurrentWebhook } from './read-webhooks.ts'
import { secretLeaseMs } from './webhook-secret-lease.ts'
import type { WebhookState } from './webhook-store.ts'

/** One queue of a tenant: its first attempts or its retries. */
export type DeliveryQueue = { tenantId: string; retry: boolean }

/** A queue with the most deliveries to claim from it. */
export type QueueLimit = DeliveryQueue & { limit: number }

export type ClaimedDelivery = {
  tenantId: string
  deliveryId: string
  /** When it was created, as Postgres writes it: it finds the delivery's partition. */
  createdAt: string
  /** For the log; null for a test. */
  alertId: string | null
  /** Proof of the claim, for `recordOutcomes`. */
  claim: string
  event: string
  /** The bytes that every attempt sends. */
  body: Buffer
  /** Continues the trace of the event; null when it is not traced. */
  traceparent: string | null
  /** Attempts recorded so far, and how many of these before its last replay. */
  attempts: number
  attemptsBefore: number
  /** Age in ms, by the database's clock. */
  ageMs: number
  /** Whether it is the half-open probe of a webhook whose circuit is open. */
  probe: boolean
  /** The webhook at the time of the claim. */
  webhook: CurrentWebhook
  /** How long after the claim the webhook's secret may sign. */
  secretLeaseMs: number
}

/** SQL: the tenant is active and its webhook not paused. Deliveries of others are not read. */
export const isServed = `t.status = 'active' and coalesce(w.state, 'off') <> 'paused'`

/**
 * SQL: pending, and without a valid claim. All times are compared with the database's clock, since
 * the clocks of processes differ.
 */
const isFree = (alias: string) =>
  `${alias}.state = 'pending' and (${alias}.claimed_by is null
    or ($4 and coalesce(${alias}.claimed_until, ${alias}.due_at) <= now()))`

const claimSql = `
with queues as materialized (
  select a.tenant_id, a.retry, a.queue_limit,
    w.state = 'on' and w.circuit_open_until is not null as circuit_open
  from unnest($1::text[], $2::boolean[], $3::integer[]) as a (tenant_id, retry, queue_limit)
  join tenants t using (tenant_id)
  left join webhooks w using (tenant_id)
  where ${isServed}
), probed as materialized (
  select tenant_id from webhooks
  where tenant_id in (select tenant_id from queues where circuit_open)
    and circuit_open_until <= now()
  for update skip locked
), picked as (
  select d.delivery_id, d.created_at, false as probe
  from queues
  cross join lateral (
    select due.delivery_id, due.created_at from deliveries as due
    where due.tenant_id = queues.tenant_id and (due.attempts > 0) = queues.retry
      and due.due_at <= now() and ${isFree('due')}
    order by due.due_at
    limit queues.queue_limit
    for update skip locked
  ) as d
  where queues.circuit_open is not true
  union all
  select d.delivery_id, d.created_at, true
  from probed
  cross join lateral (
    select due.delivery_id, due.created_at from deliveries as due
    where due.tenant_id = probed.tenant_id and due.due_at <= now() and ${isFree('due')}
    order by (due.attempts > 0), due.due_at
    limit 1
    for update skip locked
  ) as d
), claimed as (
  update deliveries as d set claimed_by = $5,
    claimed_until = now() + $6 * interval '1 millisecond'
  from picked where d.delivery_id = picked.delivery_id and d.created_at = picked.created_at
  returning d.tenant_id, d.delivery_id, d.created_at::text, d.alert_id, d.event, d.body,
    d.traceparent, d.attempts, d.attempts_before_replay, d.claimed_until, picked.probe,
    (extract(epoch from now() - d.created_at) * 1000)::float8 as age_ms
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
 * Settings of the delivery process's sessions. Every statement finds its rows by an index and in
 * its order, so each is planned once. Otherwise a plan that was made for a small table would scan
 * the table after it has grown.
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
  created_at: string
  alert_id: string | null
  event: string
  body: Buffer
  traceparent: string | null
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

type ClaimRequest = {
  queues: readonly QueueLimit[]
  /** Unique to this request: it proves the claim. */
  claim: string
  claimMs: number
  /** Whether to claim deliveries whose claim by another process has expired. */
  takeOver: boolean
}

/** Claims the oldest due deliveries of each queue. Any number of processes may claim at once. */
export async function claimDeliveries(
  db: Queryable,
  options: ClaimRequest,
): Promise<ClaimedDelivery[]> {
  const { queues, claim, claimMs } = options
  const { rows } = await db.query<ClaimedRow>({
    name: 'claim-due',
    text: claimSql,
    values: [
      queues.map((queue) => queue.tenantId),
      queues.map((queue) => queue.retry),
      queues.map((queue) => queue.limit),
      options.takeOver,
      claim,
      claimMs,
    ],
  })
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    deliveryId: row.delivery_id,
    createdAt: row.created_at,
    alertId: row.alert_id,
    claim,
    event: row.event,
    body: row.body,
    traceparent: row.traceparent,
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
