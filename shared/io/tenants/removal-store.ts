/** What must stay gone, as Postgres has it, and how a Postgres that was put back takes it. */
import { dayMs } from '#shared/core/base/instants.ts'
import { erasuresKeptDays } from '#shared/core/base/limits/tenants.ts'
import { pauseWebhook } from '#shared/io/deliveries/webhook-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import type { Erased, Removal } from './removal-list.ts'

/** Retired API keys, the newest webhook secret of each tenant, and the erasures that are done. */
export async function listRemovals(db: Queryable, nowMs: number): Promise<Removal[]> {
  const keys = await db.query<{ tenant_id: string; sha256: string }>(
    `select tenant_id, encode(key_hash, 'hex') as sha256 from api_keys where state = 'retired'`,
  )
  const secrets = await db.query<{ tenant_id: string; secret_id: number }>(
    `select tenant_id, max(secret_id) as secret_id from tenant_secrets
     where kind = 'webhook' group by tenant_id`,
  )
  return [
    ...keys.rows.map((row): Removal => ({ kind: 'api_key', ...row })),
    ...secrets.rows.map((row): Removal => ({ kind: 'webhook', ...row })),
    ...(await listErased(db, nowMs)),
  ]
}

async function listErased(db: Queryable, nowMs: number): Promise<Erased[]> {
  const { rows } = await db.query<Omit<Erased, 'started_at' | 'kind'> & { started_at: Date }>(
    `select tenant_id, kind as subject, subject_sha256 as sha256, max(started_at) as started_at
     from erasures where state = 'done' and ended_at > $1
     group by tenant_id, kind, subject_sha256`,
    [new Date(nowMs - erasuresKeptDays * dayMs)],
  )
  return rows.map((row) => ({ kind: 'erasure', ...row, started_at: row.started_at.toISOString() }))
}

/** Retires a key that is active although it was retired. @returns false when it is not active */
export function retireRevivedKey(
  postgres: Postgres,
  { tenant_id: tenantId, sha256 }: Extract<Removal, { kind: 'api_key' }>,
): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    const { rows } = await tx.query<{ last4: string }>(
      `update api_keys set state = 'retired', retired_at = clock_timestamp()
       where key_hash = decode($2, 'hex') and tenant_id = $1 and state = 'active' returning last4`,
      [tenantId, sha256],
    )
    const [key] = rows
    if (key === undefined) return false
    await insertAudit(tx, {
      actor: 'system',
      tenantId,
      action: 'tenant.recovered',
      before: { api_key: { last4: key.last4, state: 'active' } },
      after: { api_key: { last4: key.last4, state: 'retired' } },
    })
    return true
  })
}

/**
 * Pauses a webhook whose secret is older than one that was in use: its deliveries wait until an
 * operator has rotated the secret and resumes it.
 * @returns false when it is not on
 */
export function pauseRevivedWebhook(postgres: Postgres, tenantId: string): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    if (!(await pauseWebhook(tx, tenantId))) return false
    await insertAudit(tx, {
      actor: 'system',
      tenantId,
      action: 'tenant.recovered',
      before: { webhook: 'on' },
      after: { webhook: 'paused', webhook_secret: 'older than the last one' },
    })
    return true
  })
}
