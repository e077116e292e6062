/**
 * Deliveries in Postgres, the truth of what is still to be sent (`delivery-claim-store.ts` hands
 * them out, `delivery-operations-store.ts` is what operators see and do). Every attempt is recorded
 * in the statement that reschedules or ends its delivery, and only while its claim is held: neither
 * is ever there without the other.
 */

import { probeDelaysMs } from '#shared/core/deliveries/delivery-limits.ts'
import type { Environment } from '#shared/core/tenants/credentials.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import {
  type ClaimedDelivery,
  type ClaimRequest,
  claimDeliveries,
  countDue,
  type DueLane,
  findDueLanes,
} from './delivery-claim-store.ts'
import { extendSecretLease, secretLeaseMs } from './webhook-secret-lease.ts'
import type { WebhookState } from './webhook-store.ts'

/** An attempt that was made, as it is kept. */
export type AttemptRecord = {
  attempt: number
  /** When it began, on the process's monotonic clock. */
  atMs: number
  durationMs: number
  /** Null when no answer came. */
  status: number | null
  errorKind: string | null
  error: string | null
  address: string | null
  answer: string | null
}

/** What becomes of a claimed delivery. */
export type DeliveryOutcome = {
  tenantId: string
  deliveryId: string
  claim: string
  /** Null when nothing was sent: a release, or an end without an attempt. */
  attempt: AttemptRecord | null
  next: /** Due at a moment of the process's monotonic clock. */
    | { state: 'pending'; dueAtMs: number }
    | { state: 'delivered' }
    | { state: 'failed'; reason: 'exhausted' | 'gone' }
    | { state: 'skipped'; reason: 'no_webhook' }
  /** What the attempt says of the webhook it went to; absent when it says nothing. */
  health?: AttemptHealth
  /** The webhook to switch off in the same transaction, if it still has this URL. */
  switchOff?: { url: string; reason: OffReason }
}

/** Why a webhook is switched off by us: the receiver said so, or failed for too long. */
export type OffReason = 'gone' | 'failing'

export type AttemptHealth = {
  url: string
  ok: boolean
  /** What went wrong, in a word or two: `timeout`, `status 500`. */
  failure: string | null
  /** The attempt was the one that a held webhook is allowed. */
  probe: boolean
  /** So many attempts fail that the webhook's deliveries are to be held. */
  hold: boolean
}

/** A webhook's health after outcomes were recorded: only of those that are failing or were held. */
export type RecordedHealth = {
  tenantId: string
  url: string
  /** How long its attempts have failed; null when the last one succeeded. */
  failingForMs: number | null
  failedAttempts: number
  /** Whether its deliveries are held, before and after. */
  wasHeld: boolean
  isHeld: boolean
}

export type Recorded = {
  /** Ids of the deliveries whose outcome was recorded. */
  recorded: Set<string>
  /** Tenants whose webhook was switched off. */
  switchedOff: string[]
  health: RecordedHealth[]
}

/** A tenant's webhook as it is at this moment. */
export type CurrentWebhook = {
  environment: Environment
  suspended: boolean
  state: WebhookState
  url: string | null
  /** Sealed; null while a rotation has the old secret off and the new one not yet on. */
  sealedSecret: string | null
}

export type WebhooksRead = {
  webhooks: Map<string, CurrentWebhook>
  /** How old this reading may be, in ms, when one of its secrets signs. */
  secretLeaseMs: number
}

export type DeliveryStore = {
  /**
   * Claims due deliveries from the fronts of the lanes asked for. What another process holds is
   * passed over, so any number of processes may claim at once.
   */
  claimDeliveries: (request: ClaimRequest) => Promise<ClaimedDelivery[]>
  /**
   * The lanes that have a delivery due, each with when its oldest was; waiting tenants left out.
   */
  findDueLanes: () => Promise<DueLane[]>
  /** How many deliveries are due and not yet taken, counted up to 100,000. */
  countDue: (upTo?: number) => Promise<number>
  /** The webhooks of some tenants, secrets sealed. A tenant that is gone is not in the map. */
  readWebhooks: (tenantIds: readonly string[]) => Promise<WebhooksRead>
  /** Lets secrets that are read from now on sign for `leaseMs`; rotations then wait as long. */
  extendSecretLease: (leaseMs: number) => Promise<void>
  /**
   * Records what became of claimed deliveries, many in one statement, with what that says of their
   * webhooks. An outcome whose claim another process has taken over in the meantime changes
   * nothing.
   * @param nowMs the process's monotonic clock: only the distances of the outcomes' moments from it
   *   reach the database, which counts them from its own clock
   */
  recordOutcomes: (outcomes: readonly DeliveryOutcome[], nowMs: number) => Promise<Recorded>
  /**
   * Switches a webhook off that has been failing for long, if it still has this URL and no attempt
   * has succeeded since. @returns whether it did
   */
  switchFailingOff: (failing: RecordedHealth) => Promise<boolean>
}

/** Deliveries of one Postgres. */
export function createDeliveryStore(postgres: Postgres): DeliveryStore {
  return {
    claimDeliveries: (request) => claimDeliveries(postgres, request),
    findDueLanes: () => findDueLanes(postgres),
    countDue: (upTo) => countDue(postgres, upTo),
    readWebhooks: (tenantIds) => readWebhooks(postgres, tenantIds),
    extendSecretLease: (leaseMs) => extendSecretLease(postgres, leaseMs),
    recordOutcomes: (outcomes, nowMs) => recordOutcomes(postgres, outcomes, nowMs),
    switchFailingOff: (failing) => switchFailingOff(postgres, failing),
  }
}

async function readWebhooks(db: Queryable, tenantIds: readonly string[]): Promise<WebhooksRead> {
  const { rows } = await db.query<{
    tenant_id: string | null
    secret_lease_ms: number
    environment: Environment
    suspended: boolean
    state: WebhookState
    url: string | null
    sealed: string | null
  }>({
    name: 'read-webhooks',
    text: `select ${secretLeaseMs} as secret_lease_ms, t.tenant_id, t.environment,
             t.status = 'suspended' as suspended, coalesce(w.state, 'off') as state, w.url, s.sealed
           from webhook_secret_lease
           left join tenants t on t.tenant_id = any($1)
           left join webhooks w using (tenant_id)
           left join tenant_secrets s
             on s.tenant_id = t.tenant_id and s.kind = 'webhook' and s.state = 'active'`,
    values: [tenantIds],
  })
  const webhooks = new Map<string, CurrentWebhook>()
  for (const { tenant_id, sealed, secret_lease_ms: _, ...row } of rows) {
    if (tenant_id !== null) webhooks.set(tenant_id, { ...row, sealedSecret: sealed })
  }
  return { webhooks, secretLeaseMs: rows[0]!.secret_lease_ms }
}

/** A parameter of ms from now as an instant of the database's clock. */
const fromNow = (parameter: string) => `now() + ${parameter} * interval '1 millisecond'`

const toHoldMs = probeDelaysMs.map((ms) => `interval '${ms} milliseconds'`).join(', ')

/**
 * Deliveries, attempts and health in one statement. Deliveries are locked in the order of their
 * ids, as everywhere, then webhooks in the order of their tenants, and only those that are failing
 * or begin to: a healthy one costs a look.
 */
const recordSql = `
with outcomes as (
  select *, ${fromNow('due_in_ms')} as due_at, ${fromNow('at_in_ms')} as at
  from unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[],
    $6::integer[], $7::float8[], $8::integer[], $9::integer[], $10::text[], $11::text[],
    $12::text[], $13::text[], $14::text[], $15::boolean[], $16::text[], $17::boolean[],
    $18::boolean[])
  as o (delivery_id, claim, state, due_in_ms, reason,
    attempt, at_in_ms, duration_ms, status, error_kind, error, address, answer,
    url, ok, failure, probe, hold)
), locked as materialized (
  select d.delivery_id from deliveries as d join outcomes as o using (delivery_id)
  where d.claimed_by = o.claim
  order by d.delivery_id for update of d
), recorded as (
  update deliveries as d
  set state = o.state, claimed_by = null, claimed_until = null, reason = o.reason,
    due_at = coalesce(o.due_at, d.due_at), attempts = coalesce(o.attempt, d.attempts),
    ended_at = case when o.state <> 'pending' then now() end
  from outcomes as o join locked using (delivery_id)
  where d.delivery_id = o.delivery_id
  returning d.delivery_id, d.tenant_id, o.attempt, o.at, o.duration_ms, o.status, o.error_kind,
    o.error, o.address, o.answer, o.url, o.ok, o.failure, o.probe, o.hold
), attempted as (
  insert into delivery_attempts
    (delivery_id, attempt, at, duration_ms, status, error_kind, error, address, answer)
  select delivery_id, attempt, at, duration_ms, status, error_kind, error, address, answer
  from recorded where attempt is not null
), tried as (
  select tenant_id, url, bool_or(ok) as ok, count(*) filter (where not ok) as failed,
    min(at) filter (where not ok) as failed_at, max(failure) as failure,
    bool_or(probe and not ok) as probe_failed, bool_or(hold) as hold
  from recorded where url is not null group by tenant_id, url
), known as (
  select w.tenant_id, w.circuit_open_until from webhooks as w join tried using (tenant_id, url)
  where w.failing_since is not null or not tried.ok
  order by w.tenant_id for update of w
), health as (
  update webhooks as w set
    failing_since = case when not t.ok then coalesce(w.failing_since, t.failed_at) end,
    failed_attempts = case when t.ok then 0 else w.failed_attempts + t.failed end,
    last_failure = case when not t.ok then t.failure end,
    failed_probes = case when t.ok then 0 else w.failed_probes + t.probe_failed::integer end,
    circuit_open_until = case
      when t.ok then null
      when t.probe_failed or (t.hold and w.circuit_open_until is null) then now() +
        (array[${toHoldMs}])[least(w.failed_probes + t.probe_failed::integer, $19::integer) + 1]
      else w.circuit_open_until end
  from tried as t join known using (tenant_id)
  where w.tenant_id = t.tenant_id
  returning w.tenant_id, w.url,
    (extract(epoch from now() - w.failing_since) * 1000)::float8 as failing_for_ms,
    w.failed_attempts, w.circuit_open_until is not null as is_open,
    known.circuit_open_until is not null as was_open
)
select delivery_id, null as tenant_id, null as url, null as failing_for_ms,
  null as failed_attempts, null as is_open, null as was_open from recorded
union all select null, * from health`

async function recordOutcomes(
  postgres: Postgres,
  outcomes: readonly DeliveryOutcome[],
  nowMs: number,
): Promise<Recorded> {
  if (outcomes.every((outcome) => outcome.switchOff === undefined)) {
    return { ...(await record(postgres, outcomes, nowMs)), switchedOff: [] }
  }
  return await postgres.transaction(async (tx) => {
    const recorded = await record(tx, outcomes, nowMs)
    const switchedOff: string[] = []
    // Webhooks in the order of their tenants, as the statement before locks them.
    const ordered = outcomes.toSorted((a, b) => (a.tenantId < b.tenantId ? -1 : 1))
    for (const { tenantId, deliveryId, switchOff } of ordered) {
      if (switchOff === undefined || !recorded.recorded.has(deliveryId)) continue
      const after = { delivery_id: deliveryId }
      const wanted = { tenantId, ...switchOff, after }
      if (await switchWebhookOff(tx, wanted)) switchedOff.push(tenantId)
    }
    return { ...recorded, switchedOff }
  })
}

type RecordedRow = {
  delivery_id: string | null
  tenant_id: string
  url: string
  failing_for_ms: number | null
  failed_attempts: number
  is_open: boolean
  was_open: boolean
}

async function record(
  db: Queryable,
  outcomes: readonly DeliveryOutcome[],
  nowMs: number,
): Promise<Omit<Recorded, 'switchedOff'>> {
  const column = <T>(of: (outcome: DeliveryOutcome) => T): T[] => outcomes.map(of)
  const tried = <T>(of: (attempt: AttemptRecord) => T): (T | null)[] =>
    outcomes.map(({ attempt }) => (attempt === null ? null : of(attempt)))
  const felt = <T>(of: (health: AttemptHealth) => T): (T | null)[] =>
    outcomes.map(({ health }) => (health === undefined ? null : of(health)))
  const { rows } = await db.query<RecordedRow>({
    name: 'record-outcomes',
    text: recordSql,
    values: [
      column(({ deliveryId }) => deliveryId),
      column(({ claim }) => claim),
      column(({ next }) => next.state),
      column(({ next }) => (next.state === 'pending' ? next.dueAtMs - nowMs : null)),
      column(({ next }) => ('reason' in next ? next.reason : null)),
      tried(({ attempt }) => attempt),
      tried(({ atMs }) => atMs - nowMs),
      tried(({ durationMs }) => Math.round(durationMs)),
      tried(({ status }) => status),
      tried(({ errorKind }) => errorKind),
      tried(({ error }) => error),
      tried(({ address }) => address),
      tried(({ answer }) => answer),
      felt(({ url }) => url),
      felt(({ ok }) => ok),
      felt(({ failure }) => failure),
      felt(({ probe }) => probe),
      felt(({ hold }) => hold),
      probeDelaysMs.length - 1,
    ],
  })
  const recorded = new Set<string>()
  const health: RecordedHealth[] = []
  for (const row of rows) {
    if (row.delivery_id !== null) recorded.add(row.delivery_id)
    else health.push(toHealth(row))
  }
  return { recorded, health }
}

const toHealth = (row: RecordedRow): RecordedHealth => ({
  tenantId: row.tenant_id,
  url: row.url,
  failingForMs: row.failing_for_ms,
  failedAttempts: row.failed_attempts,
  wasHeld: row.was_open,
  isHeld: row.is_open,
})

async function switchFailingOff(
  postgres: Postgres,
  { tenantId, url, failedAttempts }: RecordedHealth,
): Promise<boolean> {
  return await postgres.transaction(async (tx) => {
    const { rows } = await tx.query<{ failing_since: Date; last_failure: string | null }>(
      `select failing_since, last_failure from webhooks
       where tenant_id = $1 and failing_since is not null for update`,
      [tenantId],
    )
    if (rows.length === 0) return false
    const after = {
      failing_since: rows[0]!.failing_since.toISOString(),
      failed_attempts: failedAttempts,
      last_failure: rows[0]!.last_failure,
    }
    return await switchWebhookOff(tx, { tenantId, url, reason: 'failing', after })
  })
}

/**
 * Switches a webhook off and says why. One that was changed in the meantime is another one. What
 * its health was stays to be seen; whoever switches it on again begins anew.
 */
async function switchWebhookOff(
  tx: Queryable,
  wanted: { tenantId: string; url: string; reason: OffReason; after: object },
): Promise<boolean> {
  const { tenantId, url, reason } = wanted
  const { rowCount } = await tx.query(
    `update webhooks set state = 'off', off_reason = $3, changed_at = now()
     where tenant_id = $1 and url = $2 and state <> 'off'`,
    [tenantId, url, reason],
  )
  if (rowCount === 0) return false
  await insertAudit(tx, {
    actor: 'system',
    tenantId,
    action: 'webhook.switched_off',
    before: { url },
    after: { state: 'off', off_reason: reason, ...wanted.after },
  })
  return true
}
