/**
 * Takes a tenant's state from its entry in the directory, where Postgres was put back to an earlier
 * state: an epoch of the directory that Postgres has not reached was committed once. A secret that
 * a rotation replaced since then stays dead, and a tenant that was created since then keeps its
 * intake. An operator has seen the entry and confirmed it.
 */
import type { TenantEntry } from '#shared/core/tenants/directory-entries.ts'
import { endEverySession } from '#shared/io/operators/session-store.ts'
import { insertPolicyDocument } from '#shared/io/policies/policy-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { recoverAddressKey } from '#shared/io/tenants/address-key-store.ts'
import { recoverRoots } from '#shared/io/tenants/install-root-store.ts'
import { restoreApps } from '#shared/io/tenants/tenant-app-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'

export type RecoveredState = {
  entry: TenantEntry
  /** The document of the entry's policy; null when the directory does not have it. */
  policyText: string | null
  /** The last four characters of the entry's HMAC secret; null when it has none. */
  hmacLast4: string | null
  /** The operator who has confirmed it. */
  actor: string
}

/**
 * Webhook, API keys, named keys, retention and lists are not in the directory: they stay as
 * Postgres has them, or are missing.
 * @param tx a transaction
 * @returns false when Postgres has reached the epoch meanwhile, or the tenant cannot be made
 *   without its policy
 */
export async function recoverTenant(tx: Queryable, state: RecoveredState): Promise<boolean> {
  const { entry } = state
  const { tenant_id: tenantId } = entry
  const before = await lockEpoch(tx, tenantId)
  if (before === null) {
    if (state.policyText === null) return false
    await createTenantStore(tx).insertTenant({
      tenantId,
      name: '',
      environment: entry.environment,
      webhookUrl: null,
      policy: { hash: entry.policy_hash, text: state.policyText },
      createdBy: state.actor,
      telemetryStream: entry.telemetry_stream ?? 1,
    })
  } else if (before.epoch >= entry.epoch) return false
  await insertPolicyVersion(tx, state)
  await updateTenant(tx, entry)
  await restoreApps(tx, entry)
  await replaceSecret(tx, state)
  if (entry.install_roots !== undefined) await recoverRoots(tx, tenantId, entry.install_roots)
  if (entry.address_key_sealed !== undefined) {
    await recoverAddressKey(tx, tenantId, entry.address_key_sealed)
  }
  await insertAudit(tx, {
    actor: state.actor,
    tenantId,
    action: 'tenant.recovered',
    before,
    after: {
      epoch: entry.epoch + 1,
      status: entry.status,
      policy_version: entry.policy_version,
      hmac_secret: state.hmacLast4 === null ? null : { last4: state.hmacLast4 },
    },
  })
  return true
}

/**
 * Signs every operator out: sessions that had ended are there again, also those of operators who
 * were removed or have another role since then.
 */
export async function endRevivedSessions(tx: Queryable, actor: string): Promise<void> {
  const sessions = await endEverySession(tx)
  if (sessions === 0) return
  await insertAudit(tx, {
    actor,
    tenantId: null,
    action: 'session.ended',
    before: { sessions },
  })
}

async function lockEpoch(tx: Queryable, tenantId: string): Promise<{ epoch: number } | null> {
  const { rows } = await tx.query<{ epoch: number }>(
    'select epoch from tenants where tenant_id = $1 for no key update',
    [tenantId],
  )
  return rows[0] ?? null
}

/** A version that was published since with another document stays what it is. */
async function insertPolicyVersion(
  tx: Queryable,
  { entry, policyText, actor }: RecoveredState,
): Promise<void> {
  if (policyText === null) return
  await insertPolicyDocument(tx, { hash: entry.policy_hash, text: policyText })
  await tx.query(
    `insert into tenant_policies (tenant_id, version, policy_hash, created_by)
     values ($1, $2, $3, $4) on conflict do nothing`,
    [entry.tenant_id, entry.policy_version, entry.policy_hash, actor],
  )
}

/** The epoch after the entry's: one epoch names one content. */
async function updateTenant(tx: Queryable, entry: TenantEntry): Promise<void> {
  await tx.query(
    `update tenants set epoch = $2::bigint + 1, status = $3,
       policy_version = coalesce((
         select version from tenant_policies
         where tenant_id = $1 and version = $4 and policy_hash = $5), policy_version),
       ingest_rate_per_second = $6, ingest_burst = $7,
       ingest_bytes_per_second = $8, ingest_bytes_burst = $9, ingest_share = $10,
       shared_secret_off = $11, ingest_answer = $12, client_address = $13,
       store_client_address = $14
     where tenant_id = $1`,
    [
      entry.tenant_id,
      entry.epoch,
      entry.status,
      entry.policy_version,
      entry.policy_hash,
      entry.ingest_rate?.perSecond ?? null,
      entry.ingest_rate?.burst ?? null,
      entry.ingest_bytes?.perSecond ?? null,
      entry.ingest_bytes?.burst ?? null,
      entry.ingest_share ?? null,
      entry.shared_secret_off === true,
      entry.ingest_answer ?? 'full',
      entry.client_address ?? 'connection',
      entry.store_client_address === true,
    ],
  )
}

/** Retires what Postgres has, unless it is the entry's. */
async function replaceSecret(
  tx: Queryable,
  { entry, hmacLast4 }: Pick<RecoveredState, 'entry' | 'hmacLast4'>,
): Promise<void> {
  const { tenant_id: tenantId, hmac_secret_sealed: sealed } = entry
  await tx.query(
    `delete from tenant_secrets where tenant_id = $1 and kind = 'hmac' and state = 'pending'`,
    [tenantId],
  )
  await tx.query(
    `update tenant_secrets set state = 'retired', retired_at = clock_timestamp()
     where tenant_id = $1 and kind = 'hmac' and state in ('active', 'off')
       and sealed is distinct from $2`,
    [tenantId, sealed],
  )
  if (sealed === null || hmacLast4 === null) return
  await tx.query(
    `insert into tenant_secrets (tenant_id, kind, state, sealed, last4)
     select $1, 'hmac', 'active', $2, $3 where not exists (
       select 1 from tenant_secrets
       where tenant_id = $1 and kind = 'hmac' and state in ('active', 'off'))`,
    [tenantId, sealed, hmacLast4],
  )
}
