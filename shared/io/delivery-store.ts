/**
 * Deliveries in Postgres, the truth of what is still to be sent (`delivery-claim-store.ts` hands
 * them out). Every attempt is recorded in the statement that reschedules or ends its delivery, and
 * only while its claim is held: neither is ever there without the other.
 */
import type { Environment } from '#shared/core/credentials.ts'
import { insertAudit } from './audit-store.ts'
import {
  type ClaimedDelivery,
  type ClaimRequest,
  claimDeliveries,
  countDue,
  findDueLanes,
  type Lane,
} from './delivery-claim-store.ts'
import type { Postgres, Queryable } from './postgres.ts'

export type WebhookState = 'on' | 'off' | 'paused'

/** An attempt that was made, as it is kept. */
export type AttemptRecord = {
  attempt: number
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
  next:
    | { state: 'pending'; dueAtMs: number }
    | { state: 'delivered' }
    | { state: 'failed'; reason: 'exhausted' | 'gone' }
    | { state: 'skipped'; reason: 'no_webhook' }
  /** The webhook to switch off in the same transaction, if it still has this URL. */
  switchOff?: { url: string; reason: 'gone' }
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

/** A delivery as operators see it. Times are ISO-8601. */
export type DeliveryView = {
  delivery_id: string
  tenant_id: string
  alert_id: string | null
  event: string
  state: string
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

export type DeliveryStore = {
  /**
   * Claims due deliveries from the fronts of the lanes asked for. What another process holds is
   * passed over, so any number of processes may claim at once.
   */
  claimDeliveries: (request: ClaimRequest) => Promise<ClaimedDelivery[]>
  /**
   * The lanes that have a delivery due, each with when its oldest was; waiting tenants left out.
   */
  findDueLanes: (nowMs: number) => Promise<(Lane & { oldestDueAtMs: number })[]>
  /** How many deliveries are due and not yet taken, counted up to 100,000. */
  countDue: (nowMs: number, upTo?: number) => Promise<number>
  /** The webhooks of some tenants, secrets sealed. A tenant that is gone is not in the map. */
  readWebhooks: (tenantIds: readonly string[]) => Promise<Map<string, CurrentWebhook>>
  /**
   * Records what became of claimed deliveries, many in one statement. An outcome whose claim
   * another process has taken over in the meantime changes nothing.
   * @returns the ids that were recorded, and the tenants whose webhook was switched off
   */
  recordOutcomes: (
    outcomes: readonly DeliveryOutcome[],
    nowMs: number,
  ) => Promise<{ recorded: Set<string>; switchedOff: string[] }>
  /** A tenant's deliveries, newest first, each with all its attempts. */
  listDeliveries: (query: {
    tenantId: string
    /** One of the states; any other has no deliveries. */
    state?: string | undefined
    limit: number
  }) => Promise<DeliveryView[]>
}

/** Deliveries of one Postgres. */
export function createDeliveryStore(postgres: Postgres): DeliveryStore {
  return {
    claimDeliveries: (request) => claimDeliveries(postgres, request),
    findDueLanes: (nowMs) => findDueLanes(postgres, nowMs),
    countDue: (nowMs, upTo) => countDue(postgres, nowMs, upTo),
    readWebhooks: (tenantIds) => readWebhooks(postgres, tenantIds),
    recordOutcomes: (outcomes, nowMs) => recordOutcomes(postgres, outcomes, nowMs),
    listDeliveries: (query) => listDeliveries(postgres, query),
  }
}

async function readWebhooks(
  db: Queryable,
  tenantIds: readonly string[],
): Promise<Map<string, CurrentWebhook>> {
  const { rows } = await db.query<{
    tenant_id: string
    environment: Environment
    suspended: boolean
    state: WebhookState
    url: string | null
    sealed: string | null
  }>({
    name: 'read-webhooks',
    text: `select t.tenant_id, t.environment, t.status = 'suspended' as suspended,
             coalesce(w.state, 'off') as state, w.url, s.sealed
           from tenants t
           left join webhooks w using (tenant_id)
           left join tenant_secrets s
             on s.tenant_id = t.tenant_id and s.kind = 'webhook' and s.state = 'active'
           where t.tenant_id = any($1)`,
    values: [tenantIds],
  })
  return new Map(
    rows.map(({ tenant_id, sealed, ...row }) => [tenant_id, { ...row, sealedSecret: sealed }]),
  )
}

const recordSql = `
with outcomes as (
  select * from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[],
    $6::integer[], $7::timestamptz[], $8::integer[], $9::integer[], $10::text[], $11::text[],
    $12::text[], $13::text[])
  as o (delivery_id, claim, state, due_at, reason,
    attempt, at, duration_ms, status, error_kind, error, address, answer)
), recorded as (
  update deliveries as d
  set state = o.state, claimed_by = null, reason = o.reason,
    due_at = coalesce(o.due_at, d.due_at), attempts = coalesce(o.attempt, d.attempts),
    ended_at = case when o.state <> 'pending' then $14::timestamptz end
  from outcomes as o
  where d.delivery_id = o.delivery_id and d.claimed_by = o.claim
  returning d.delivery_id
), attempted as (
  insert into delivery_attempts
    (delivery_id, attempt, at, duration_ms, status, error_kind, error, address, answer)
  select o.delivery_id, o.attempt, o.at, o.duration_ms, o.status, o.error_kind, o.error, o.address,
    o.answer
  from outcomes as o join recorded using (delivery_id)
  where o.attempt is not null
)
select delivery_id from recorded`

async function recordOutcomes(
  postgres: Postgres,
  outcomes: readonly DeliveryOutcome[],
  nowMs: number,
): Promise<{ recorded: Set<string>; switchedOff: string[] }> {
  if (outcomes.every((outcome) => outcome.switchOff === undefined)) {
    return { recorded: await record(postgres, outcomes, nowMs), switchedOff: [] }
  }
  return await postgres.transaction(async (tx) => {
    const recorded = await record(tx, outcomes, nowMs)
    const switchedOff: string[] = []
    for (const outcome of outcomes) {
      if (!recorded.has(outcome.deliveryId)) continue
      if (await switchWebhookOff(tx, outcome, nowMs)) switchedOff.push(outcome.tenantId)
    }
    return { recorded, switchedOff }
  })
}

async function record(
  db: Queryable,
  outcomes: readonly DeliveryOutcome[],
  nowMs: number,
): Promise<Set<string>> {
  const column = <T>(of: (outcome: DeliveryOutcome) => T): T[] => outcomes.map(of)
  const tried = <T>(of: (attempt: AttemptRecord) => T): (T | null)[] =>
    outcomes.map(({ attempt }) => (attempt === null ? null : of(attempt)))
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'record-outcomes',
    text: recordSql,
    values: [
      column(({ deliveryId }) => deliveryId),
      column(({ claim }) => claim),
      column(({ next }) => next.state),
      column(({ next }) => (next.state === 'pending' ? toTime(next.dueAtMs) : null)),
      column(({ next }) => ('reason' in next ? next.reason : null)),
      tried(({ attempt }) => attempt),
      tried(({ atMs }) => toTime(atMs)),
      tried(({ durationMs }) => Math.round(durationMs)),
      tried(({ status }) => status),
      tried(({ errorKind }) => errorKind),
      tried(({ error }) => error),
      tried(({ address }) => address),
      tried(({ answer }) => answer),
      toTime(nowMs),
    ],
  })
  return new Set(rows.map((row) => row.delivery_id))
}

/** The receiver said it is gone. A webhook that was changed in the meantime is another one. */
async function switchWebhookOff(
  tx: Queryable,
  { tenantId, deliveryId, switchOff }: DeliveryOutcome,
  nowMs: number,
): Promise<boolean> {
  if (switchOff === undefined) return false
  const { rowCount } = await tx.query(
    `update webhooks set state = 'off', off_reason = $3, changed_at = $4
     where tenant_id = $1 and url = $2 and state <> 'off'`,
    [tenantId, switchOff.url, switchOff.reason, toTime(nowMs)],
  )
  if (rowCount === 0) return false
  await insertAudit(tx, {
    actor: 'system',
    tenantId,
    action: 'webhook.switched_off',
    before: { url: switchOff.url },
    after: { state: 'off', off_reason: switchOff.reason, delivery_id: deliveryId },
  })
  return true
}

const attemptsJson = `coalesce((
  select json_agg(json_build_object(
    'attempt', a.attempt, 'at', a.at, 'duration_ms', a.duration_ms, 'status', a.status,
    'error_kind', a.error_kind, 'error', a.error, 'address', a.address, 'answer', a.answer)
    order by a.attempt)
  from delivery_attempts as a where a.delivery_id = d.delivery_id), '[]') as attempts`

async function listDeliveries(
  db: Queryable,
  query: Parameters<DeliveryStore['listDeliveries']>[0],
): Promise<DeliveryView[]> {
  const { rows } = await db.query<
    Omit<DeliveryView, 'created_at' | 'due_at' | 'ended_at'> & {
      created_at: Date
      due_at: Date
      ended_at: Date | null
    }
  >({
    text: `select d.delivery_id, d.tenant_id, d.alert_id, d.event, d.state, d.reason, d.created_at,
             d.due_at, d.ended_at, ${attemptsJson}
           from deliveries as d
           where d.tenant_id = $1 and ($2::text is null or d.state = $2)
           order by d.created_at desc, d.delivery_id desc
           limit $3`,
    values: [query.tenantId, query.state ?? null, query.limit],
  })
  return rows.map((row) => ({
    ...row,
    created_at: row.created_at.toISOString(),
    due_at: row.ended_at === null ? row.due_at.toISOString() : null,
    ended_at: row.ended_at?.toISOString() ?? null,
    attempts: row.attempts.map((one) => ({ ...one, at: new Date(one.at).toISOString() })),
  }))
}

const toTime = (ms: number): string => new Date(ms).toISOString()
