/**
 * Dates what the simulated fleet makes of the past, in Postgres: the tenant, its shadow policy,
 * labels, and deliveries with their attempts. Only `di fleet --history` calls it, as the owner of
 * a local database and for a tenant that it has just created.
 */
import { type Queryable, toTime } from '#shared/io/postgres/postgres.ts'

/** Dates labels that were inserted in this transaction: when they were received, in ms since 1970. */
export async function dateLabels(
  tx: Queryable,
  labels: readonly { labelId: string; createdAtMs: number }[],
): Promise<void> {
  await tx.query(
    `update labels set created_at = dated.at
     from unnest($1::text[], $2::timestamptz[]) as dated (label_id, at)
     where labels.label_id = dated.label_id`,
    [labels.map(({ labelId }) => labelId), labels.map((label) => toTime(label.createdAtMs))],
  )
}

/** A delivery that has ended, with its attempts in their order. */
export type EndedDelivery = {
  deliveryId: string
  createdAtMs: number
  /** `exhausted` for one that failed. */
  reason: 'exhausted' | null
  attempts: { atMs: number; durationMs: number; status: number }[]
}

/** Dates a tenant and its first policy, in ms since 1970. */
export async function dateTenant(tx: Queryable, tenantId: string, atMs: number): Promise<void> {
  const values = [tenantId, toTime(atMs)]
  await tx.query('update tenants set created_at = $2 where tenant_id = $1', values)
  await tx.query('update tenant_policies set created_at = $2 where tenant_id = $1', values)
}

/** Dates the shadow policy of a tenant: it decides events received from then on. */
export async function dateShadow(tx: Queryable, tenantId: string, atMs: number): Promise<void> {
  await tx.query(
    'update shadow_policies set effective_at = $2, created_at = $2 where tenant_id = $1',
    [tenantId, toTime(atMs)],
  )
}

/**
 * Ends deliveries. Call it in the transaction that raises their alerts, so that no delivery process
 * ever sees them as due.
 */
export async function endDeliveries(
  tx: Queryable,
  deliveries: readonly EndedDelivery[],
): Promise<void> {
  const column = <T>(read: (delivery: EndedDelivery) => T): T[] => deliveries.map(read)
  await tx.query(
    `update deliveries as d
     set state = case when e.reason is null then 'delivered' else 'failed' end,
       reason = e.reason, attempts = e.attempts, created_at = e.created_at,
       due_at = e.ended_at, ended_at = e.ended_at
     from unnest($1::text[], $2::text[], $3::integer[], $4::timestamptz[], $5::timestamptz[])
       as e (delivery_id, reason, attempts, created_at, ended_at)
     where d.delivery_id = e.delivery_id`,
    [
      column(({ deliveryId }) => deliveryId),
      column(({ reason }) => reason),
      column(({ attempts }) => attempts.length),
      column(({ createdAtMs }) => toTime(createdAtMs)),
      column(({ attempts }) => toTime(toEndMs(attempts))),
    ],
  )
  const attempts = deliveries.flatMap(({ deliveryId, createdAtMs, attempts: own }) =>
    own.map((attempt, index) => ({ deliveryId, createdAtMs, number: index + 1, ...attempt })),
  )
  await tx.query(
    `insert into delivery_attempts
       (delivery_id, delivery_created_at, attempt, at, duration_ms, status, error_kind, address)
     select delivery_id, delivery_created_at, attempt, at, duration_ms, status,
       case when status >= 300 then 'status' end, '127.0.0.1'
     from unnest($1::text[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[],
       $6::timestamptz[])
       as a (delivery_id, attempt, at, duration_ms, status, delivery_created_at)`,
    [
      attempts.map(({ deliveryId }) => deliveryId),
      attempts.map(({ number }) => number),
      attempts.map(({ atMs }) => toTime(atMs)),
      attempts.map(({ durationMs }) => durationMs),
      attempts.map(({ status }) => status),
      attempts.map(({ createdAtMs }) => toTime(createdAtMs)),
    ],
  )
}

/** A delivery ends with its last attempt. */
function toEndMs(attempts: EndedDelivery['attempts']): number {
  const { atMs, durationMs } = attempts.at(-1)!
  return atMs + durationMs
}
