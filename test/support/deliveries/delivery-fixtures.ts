// Tenants with webhooks and due deliveries, in the state in which the console and the scorer leave
// Postgres.
import { randomBytes } from 'node:crypto'
import { toAlertId, toDeliveryId } from '#shared/core/base/ids.ts'
import type { Environment } from '#shared/core/tenants/credentials.ts'
import { createSealer, type Sealer } from '#shared/io/keys/console-keys.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { insertBareTenants } from '../tenants/bare-tenant.ts'

export const testMasterKey = Buffer.alloc(32, 7).toString('base64')

export type DeliveryFixtures = {
  sealer: Sealer
  /** A fresh tenant with an active webhook secret; its webhook is off without a URL. */
  addTenant: (options?: {
    url?: string
    environment?: Environment
  }) => Promise<{ tenantId: string; secret: string }>
  setWebhook: (
    tenantId: string,
    url: string | null,
    state?: 'on' | 'off' | 'paused',
  ) => Promise<void>
  /** Replaces the webhook secret and returns the new one. */
  rotateSecret: (tenantId: string) => Promise<string>
  /** Adds alerts' deliveries, due at a time; returns their ids in order. */
  addDeliveries: (tenantId: string, count: number, options?: { atMs?: number }) => Promise<string[]>
  /** The columns that tests check, by delivery id. */
  read: (deliveryId: string) => Promise<DeliveryRow>
}

export type DeliveryRow = {
  state: string
  attempts: number
  due_at: Date
  ended_at: Date | null
  claimed_by: string | null
  reason: string | null
  body: Buffer
}

let tenants = 0
let alerts = 0

export function createDeliveryFixtures(db: Queryable): DeliveryFixtures {
  const sealer = createSealer([testMasterKey])
  const insertSecret = async (tenantId: string): Promise<string> => {
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    await db.query(
      `insert into tenant_secrets (tenant_id, kind, state, sealed, last4)
       values ($1, 'webhook', 'active', $2, $3)`,
      [tenantId, sealer.seal(secret, { tenantId, kind: 'webhook' }), secret.slice(-4)],
    )
    return secret
  }
  const setWebhook: DeliveryFixtures['setWebhook'] = async (tenantId, url, state = 'on') => {
    await db.query(
      `insert into webhooks (tenant_id, url, state) values ($1, $2, $3)
       on conflict (tenant_id) do update set url = $2, state = $3`,
      [tenantId, url, url === null ? 'off' : state],
    )
  }
  return {
    sealer,
    setWebhook,
    addTenant: async ({ url, environment = 'sandbox' } = {}) => {
      const tenantId = `tenant-${++tenants}`
      await insertBareTenants(db, [tenantId], environment)
      const secret = await insertSecret(tenantId)
      await setWebhook(tenantId, url ?? null)
      return { tenantId, secret }
    },
    rotateSecret: async (tenantId) => {
      await db.query(
        `update tenant_secrets set state = 'retired', retired_at = now()
         where tenant_id = $1 and kind = 'webhook' and state = 'active'`,
        [tenantId],
      )
      return insertSecret(tenantId)
    },
    addDeliveries: async (tenantId, count, { atMs } = {}) => {
      const made = Array.from({ length: count }, () => {
        const alertId = toAlertId({
          tenantId,
          deviceId: 'device-1',
          sessionId: `session-${++alerts}`,
          action: 'BLOCK',
        })
        // Spacing that no JSON library prints: a re-serialised body could not verify.
        const body = `{"alert_id": "${alertId}",\n "created_at":"x",  "n": ${alerts}.0}`
        return { alertId, deliveryId: toDeliveryId(alertId), body }
      })
      await db.query(
        `insert into deliveries (tenant_id, delivery_id, alert_id, body, due_at)
         select $1, delivery_id, alert_id, convert_to(body, 'UTF8'), coalesce($5, now())
         from unnest($2::text[], $3::text[], $4::text[]) as d (delivery_id, alert_id, body)`,
        [
          tenantId,
          made.map((one) => one.deliveryId),
          made.map((one) => one.alertId),
          made.map((one) => one.body),
          atMs === undefined ? null : new Date(atMs),
        ],
      )
      return made.map((one) => one.deliveryId)
    },
    read: async (deliveryId) => {
      const { rows } = await db.query<DeliveryRow>(
        `select state, attempts, due_at, ended_at, claimed_by, reason, body
         from deliveries where delivery_id = $1`,
        [deliveryId],
      )
      return rows[0]!
    },
  }
}
