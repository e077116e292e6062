/**
 * Records the outcomes of claimed deliveries. One statement records the attempt, reschedules or
 * ends its delivery and updates the webhook's health, and only while the claim is valid: an attempt
 * and its effect are never visible without each other.
 */
import { circuitOpenMs } from '#shared/core/base/limits/deliveries.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'

/** A recorded attempt. */
export type AttemptRecord = {
  attempt: number
  /** Start, on the process's monotonic clock. */
  atMs: number
  durationMs: number
  /** Null when there was no response. */
  status: number | null
  errorKind: string | null
  error: string | null
  address: string | null
  answer: string | null
}

/** The outcome of a claimed delivery. */
export type DeliveryOutcome = {
  tenantId: string
  deliveryId: string
  /** When the delivery was created, of its claim. */
  createdAt: string
  /** For the log; null for a test. */
  alertId: string | null
  claim: string
  /** Null when nothing was sent: the claim is released, or the delivery is skipped. */
  attempt: AttemptRecord | null
  next: /** Due at this time of the process's monotonic clock. */
    | { state: 'pending'; dueAtMs: number }
    | { state: 'delivered' }
    | { state: 'failed'; reason: 'exhausted' | 'gone' }
    | { state: 'skipped'; reason: 'no_webhook' }
  /** What the attempt shows about its webhook; absent when it shows nothing. */
  health?: AttemptHealth
  /** The webhook to switch off in the same transaction, if it still has this URL. */
  switchOff?: { url: string; reason: OffReason }
}

/** Why the service switches a webhook off: the receiver answered 410, or failed for too long. */
type OffReason = 'gone' | 'failing'

export type AttemptHealth = {
  url: string
  ok: boolean
  /** Short: `timeout`, `status 500`. */
  failure: string | null
  /** The attempt was the half-open probe. */
  probe: boolean
  /** So many attempts fail that the webhook's circuit must open. */
  openCircuit: boolean
}

/** A webhook's health after outcomes were recorded; only webhooks that fail or have recovered. */
export type RecordedHealth = {
  tenantId: string
  url: string
  /** How long its attempts have failed; null when the last one succeeded. */
  failingForMs: number | null
  failedAttempts: number
  /** Whether its circuit is open, before and after. */
  wasCircuitOpen: boolean
  isCircuitOpen: boolean
}

export type Recorded = {
  /** Ids of the deliveries whose outcome was recorded. */
  recorded: Set<string>
  /** Tenants whose webhook was switched off. */
  switchedOff: string[]
  health: RecordedHealth[]
}

/** SQL: a parameter of ms from now as an instant of the database's clock. */
const fromNow = (parameter: string) => `now() + ${parameter} * interval '1 millisecond'`

const openMs = circuitOpenMs.map((ms) => `interval '${ms} milliseconds'`).join(', ')

/**
 * Deliveries, attempts and health in one statement. It locks deliveries in the order of their ids,
 * like every other statement, then webhooks in the order of their tenants. Each is looked up by its
 * key in a subquery: a join that sorts afterwards is planned as a scan of the whole table, since
 * the delivery process's sessions avoid sorts. It locks only webhooks that fail, start to fail or
 * are about to be switched off: a healthy one is only read.
 *
 * A success ends a failure, and of several in one statement any does. While the circuit is open, or
 * opens, only a probe that succeeds does: among many failures some requests always succeed.
 */
const recordSql = `
with outcomes as (
  select *, ${fromNow('due_in_ms')} as due_at, ${fromNow('at_in_ms')} as at
  from unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[],
    $6::integer[], $7::float8[], $8::integer[], $9::integer[], $10::text[], $11::text[],
    $12::text[], $13::text[], $14::text[], $15::boolean[], $16::text[], $17::boolean[],
    $18::boolean[], $20::timestamptz[], $21::text[])
  as o (delivery_id, claim, state, due_in_ms, reason,
    attempt, at_in_ms, duration_ms, status, error_kind, error, address, answer,
    url, ok, failure, probe, open_circuit, created_at, off_url)
), locked as materialized (
  select o.* from (select * from outcomes order by delivery_id) as o
  cross join lateral (
    select from deliveries as d
    where d.delivery_id = o.delivery_id and d.created_at = o.created_at and d.claimed_by = o.claim
    for update
  ) as d
), recorded as (
  update deliveries as d
  set state = o.state, claimed_by = null, claimed_until = null, reason = o.reason,
    due_at = coalesce(o.due_at, d.due_at), attempts = coalesce(o.attempt, d.attempts),
    ended_at = case when o.state <> 'pending' then now() end
  from locked as o where d.delivery_id = o.delivery_id and d.created_at = o.created_at
  returning d.delivery_id, d.created_at, d.tenant_id, o.attempt, o.at, o.duration_ms, o.status,
    o.error_kind, o.error, o.address, o.answer, o.url, o.ok, o.failure, o.probe, o.open_circuit,
    o.off_url
), attempted as (
  insert into delivery_attempts
    (delivery_id, delivery_created_at, attempt, at, duration_ms, status, error_kind, error, address,
      answer)
  select delivery_id, created_at, attempt, at, duration_ms, status, error_kind, error, address,
    answer
  from recorded where attempt is not null
), attempts_by_webhook as (
  select tenant_id, coalesce(url, off_url) as url, bool_or(ok) as ok,
    count(*) filter (where not ok) as failed, min(at) filter (where not ok) as failed_at,
    max(failure) as failure, bool_or(probe and not ok) as probe_failed,
    coalesce(bool_or(probe and ok), false) as probe_ok,
    bool_or(open_circuit) as open_circuit,
    bool_or(off_url is not null) as is_off
  from recorded where url is not null or off_url is not null
  group by tenant_id, coalesce(url, off_url)
), locked_webhooks as (
  select t.*, w.circuit_open_until, opens, t.ok and not opens
      and (t.probe_ok or w.circuit_open_until is null) as recovers
  from (select * from attempts_by_webhook order by tenant_id) as t
  cross join lateral (
    select w.circuit_open_until from webhooks as w
    where w.tenant_id = t.tenant_id and w.url = t.url
      and (w.failing_since is not null or not t.ok or t.open_circuit or t.is_off)
    for update
  ) as w
  cross join lateral (
    select coalesce(t.open_circuit, false) and w.circuit_open_until is null as opens
  )
), health as (
  update webhooks as w set
    failing_since = case when not t.recovers then coalesce(w.failing_since, t.failed_at) end,
    failed_attempts = case when t.recovers then 0 else w.failed_attempts + t.failed end,
    last_failure = case when not t.recovers then coalesce(t.failure, w.last_failure) end,
    failed_probes =
      case when t.recovers then 0 else w.failed_probes + t.probe_failed::integer end,
    circuit_open_until = case
      when t.recovers then null
      when t.opens or t.probe_failed then now() +
        (array[${openMs}])[least(w.failed_probes + t.probe_failed::integer, $19::integer) + 1]
      else w.circuit_open_until end
  from locked_webhooks as t where w.tenant_id = t.tenant_id and t.ok is not null
  returning w.tenant_id, w.url,
    (extract(epoch from now() - w.failing_since) * 1000)::float8 as failing_for_ms,
    w.failed_attempts, w.circuit_open_until is not null as is_open,
    t.circuit_open_until is not null as was_open
)
select delivery_id, null as tenant_id, null as url, null as failing_for_ms,
  null as failed_attempts, null as is_open, null as was_open from recorded
union all select null, * from health`

/**
 * Records many outcomes in one statement. An outcome whose claim another process has taken over
 * changes nothing.
 * @param nowMs the process's monotonic clock. The database gets only distances from it and counts
 *   them from its own clock.
 */
export async function recordOutcomes(
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
    // The statement has locked these webhooks already, all in the order of their tenants.
    const ordered = outcomes.toSorted((a, b) => (a.tenantId < b.tenantId ? -1 : 1))
    for (const { tenantId, deliveryId, switchOff } of ordered) {
      if (switchOff === undefined || !recorded.recorded.has(deliveryId)) continue
      const after = { delivery_id: deliveryId }
      const target = { tenantId, ...switchOff, after }
      if (await switchWebhookOff(tx, target)) switchedOff.push(tenantId)
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
  const column = <T>(read: (outcome: DeliveryOutcome) => T): T[] => outcomes.map(read)
  const ofAttempt = <T>(read: (attempt: AttemptRecord) => T): (T | null)[] =>
    outcomes.map(({ attempt }) => (attempt === null ? null : read(attempt)))
  const ofHealth = <T>(read: (health: AttemptHealth) => T): (T | null)[] =>
    outcomes.map(({ health }) => (health === undefined ? null : read(health)))
  const { rows } = await db.query<RecordedRow>({
    name: 'record-outcomes',
    text: recordSql,
    values: [
      column(({ deliveryId }) => deliveryId),
      column(({ claim }) => claim),
      column(({ next }) => next.state),
      column(({ next }) => (next.state === 'pending' ? next.dueAtMs - nowMs : null)),
      column(({ next }) => ('reason' in next ? next.reason : null)),
      ofAttempt(({ attempt }) => attempt),
      ofAttempt(({ atMs }) => atMs - nowMs),
      ofAttempt(({ durationMs }) => Math.round(durationMs)),
      ofAttempt(({ status }) => status),
      ofAttempt(({ errorKind }) => errorKind),
      ofAttempt(({ error }) => error),
      ofAttempt(({ address }) => address),
      ofAttempt(({ answer }) => answer),
      ofHealth(({ url }) => url),
      ofHealth(({ ok }) => ok),
      ofHealth(({ failure }) => failure),
      ofHealth(({ probe }) => probe),
      ofHealth(({ openCircuit }) => openCircuit),
      circuitOpenMs.length - 1,
      column(({ createdAt }) => createdAt),
      column(({ switchOff }) => switchOff?.url ?? null),
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
  wasCircuitOpen: row.was_open,
  isCircuitOpen: row.is_open,
})

/**
 * Switches off a webhook that has failed for long, if it still has this URL and no attempt has
 * succeeded since. @returns whether it did
 */
export async function switchFailingOff(
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
 * Switches a webhook off with a reason, unless its URL has changed meanwhile. Its health stays
 * visible until an operator switches it on again.
 */
async function switchWebhookOff(
  tx: Queryable,
  target: { tenantId: string; url: string; reason: OffReason; after: object },
): Promise<boolean> {
  const { tenantId, url, reason } = target
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
    after: { state: 'off', off_reason: reason, ...target.after },
  })
  return true
}
