/**
 * Reads the current webhooks of tenants, with their sealed secrets, for deliveries to be signed.
 */
import type { Environment } from '#shared/core/tenants/credentials.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { secretLeaseMs } from './webhook-secret-lease.ts'
import type { WebhookState } from './webhook-store.ts'

/** The current webhook of a tenant. */
export type CurrentWebhook = {
  environment: Environment
  suspended: boolean
  state: WebhookState
  url: string | null
  /** Null while a rotation has switched the old secret off and the new one not yet on. */
  sealedSecret: string | null
}

export type WebhooksRead = {
  webhooks: Map<string, CurrentWebhook>
  /** How long after the read its secrets may sign. */
  secretLeaseMs: number
}

/** A tenant that no longer exists is not in the map. */
export async function readWebhooks(
  db: Queryable,
  tenantIds: readonly string[],
): Promise<WebhooksRead> {
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
    if (tenant_id === null) continue
    webhooks.set(tenant_id, { ...row, sealedSecret: sealed })
  }
  return { webhooks, secretLeaseMs: rows[0]!.secret_lease_ms }
}
