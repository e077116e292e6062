/**
 * A tenant's webhook in Postgres: held while something depends on its state, paused and resumed.
 * What its health columns say is about the webhook as it was set: whoever sets it, resumes it or
 * switches it off begins that anew, in the same statement.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type WebhookState = 'on' | 'off' | 'paused'

export type Webhook = { state: WebhookState; url: string | null; offReason: string | null }

/** Assignments of an update of `webhooks`: nothing is known against it. */
export const resetHealth = `failing_since = null, failed_attempts = 0, last_failure = null,
  circuit_open_until = null, failed_probes = 0`

/** Reads a tenant's webhook and keeps it as it is until the transaction ends. */
export async function lockWebhook(tx: Queryable, tenantId: string): Promise<Webhook> {
  const { rows } = await tx.query<{
    state: WebhookState
    url: string | null
    off_reason: string | null
  }>('select state, url, off_reason from webhooks where tenant_id = $1 for update', [tenantId])
  const row = rows[0]
  if (row === undefined) return { state: 'off', url: null, offReason: null }
  return { state: row.state, url: row.url, offReason: row.off_reason }
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
 * Switches a webhook on that has a URL, whatever it was, and forgets what was held against it.
 * @returns false when it is on and well, or has no URL
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

/** Brings the next probe of a webhook whose deliveries are held forward to now. */
export async function probeNow(tx: Queryable, tenantId: string): Promise<void> {
  await tx.query(
    'update webhooks set circuit_open_until = now() where tenant_id = $1 and circuit_open_until > now()',
    [tenantId],
  )
}
