/**
 * Locks, pauses and resumes a tenant's webhook in Postgres. The health columns are about the
 * present webhook: a statement that sets, resumes or switches it off also resets them.
 */
import type { WebhookEvent } from '#shared/core/deliveries/webhook-events.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type WebhookState = 'on' | 'off' | 'paused'

export type Webhook = { state: WebhookState; url: string | null; offReason: string | null }

/** SQL assignments for `webhooks` that reset its health. */
export const resetHealth = `failing_since = null, failed_attempts = 0, last_failure = null,
  circuit_open_until = null, failed_probes = 0`

/** Reads a tenant's webhook. */
export const readWebhook = (db: Queryable, tenantId: string): Promise<Webhook> =>
  selectWebhook(db, tenantId, '')

/**
 * Reads a tenant's webhook and locks it until the transaction ends. A transaction that also locks
 * deliveries locks them first.
 */
export const lockWebhook = (tx: Queryable, tenantId: string): Promise<Webhook> =>
  selectWebhook(tx, tenantId, 'for update')

async function selectWebhook(
  db: Queryable,
  tenantId: string,
  lock: '' | 'for update',
): Promise<Webhook> {
  const { rows } = await db.query<{
    state: WebhookState
    url: string | null
    off_reason: string | null
  }>(`select state, url, off_reason from webhooks where tenant_id = $1 ${lock}`, [tenantId])
  const row = rows[0]
  if (row === undefined) return { state: 'off', url: null, offReason: null }
  return { state: row.state, url: row.url, offReason: row.off_reason }
}

/** Sets which events a tenant's webhook gets, whether it is on or off. */
export async function setWebhookEvents(
  tx: Queryable,
  tenantId: string,
  events: readonly WebhookEvent[],
): Promise<void> {
  await tx.query(
    `insert into webhooks (tenant_id, off_reason, events) values ($1, 'operator', $2)
     on conflict (tenant_id) do update set events = excluded.events`,
    [tenantId, events],
  )
}

/** Pauses a webhook that is on: its deliveries wait. @returns false when it was not on */
export async function pauseWebhook(tx: Queryable, tenantId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update webhooks set state = 'paused', changed_at = clock_timestamp()
     where tenant_id = $1 and state = 'on'`,
    [tenantId],
  )
  return rowCount === 1
}

/**
 * Switches a webhook with a URL on, from any state, and resets its health.
 * @returns false when it is on and healthy, or has no URL
 */
export async function resumeWebhook(tx: Queryable, tenantId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update webhooks set state = 'on', off_reason = null, ${resetHealth},
       changed_at = clock_timestamp()
     where tenant_id = $1 and url is not null and (state <> 'on' or failing_since is not null)`,
    [tenantId],
  )
  return rowCount === 1
}

/** Makes the next half-open probe of an open circuit due now. */
export async function probeNow(tx: Queryable, tenantId: string): Promise<void> {
  await tx.query(
    `update webhooks set circuit_open_until = now()
     where tenant_id = $1 and circuit_open_until > now()`,
    [tenantId],
  )
}
