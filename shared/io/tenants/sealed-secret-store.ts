/**
 * Sealed secrets in Postgres as MASTER_KEY sees them: which of them are sealed under another key,
 * sealing those again, and whether the keys that we hold open all of them. A secret that is sealed
 * again is the same secret; where the edges hold its sealed text, the tenant's epoch rises in the
 * same transaction.
 */
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createCredentialStore } from './credential-store.ts'
import { type Sealer, type SecretKind, UnsealError } from './sealed-secrets.ts'
import { createTenantStore } from './tenant-store.ts'

// The key's id is the second part of a sealed text.
const keyIdSql = "split_part(sealed, '.', 2)"

/** How many secrets are sealed under this key, and how many tenants have a sealed secret at all. */
export async function countSealed(
  db: Queryable,
  keyId: string,
): Promise<{ already: number; tenants: number }> {
  const { rows } = await db.query<{ already: number; tenants: number }>(
    `select count(*) filter (where ${keyIdSql} = $1) as already,
       count(distinct tenant_id) as tenants
     from tenant_secrets where sealed is not null`,
    [keyId],
  )
  return rows[0]!
}

/** Tenants with a secret, in whatever state, that is sealed under another key than this one. */
export async function listSealedElsewhere(db: Queryable, keyId: string): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select distinct tenant_id from tenant_secrets
     where sealed is not null and ${keyIdSql} <> $1 order by tenant_id`,
    [keyId],
  )
  return rows.map((row) => row.tenant_id)
}

/**
 * Seals all secrets of a tenant under the sealer's key, whatever their state. Call it in a
 * transaction, under the tenant's lock.
 * @returns how many were sealed under another key
 * @throws UnsealError when one of them cannot be opened; then the transaction must be rolled back
 */
export async function rewrapTenant(
  tx: Queryable,
  sealer: Sealer,
  { tenantId, actor }: { tenantId: string; actor: string },
): Promise<number> {
  // The tenant's row first, as in every step of a rotation.
  await tx.query('select 1 from tenants where tenant_id = $1 for no key update', [tenantId])
  const { rows } = await tx.query<{ secret_id: number; kind: SecretKind; sealed: string }>(
    `select secret_id, kind, sealed from tenant_secrets
     where tenant_id = $1 and sealed is not null and ${keyIdSql} <> $2
     order by secret_id for update`,
    [tenantId, sealer.keyId],
  )
  if (rows.length === 0) return 0
  const before = await readEntry(tx, tenantId)
  for (const { secret_id, kind, sealed } of rows) {
    const owner = { tenantId, kind }
    await tx.query('update tenant_secrets set sealed = $2 where secret_id = $1', [
      secret_id,
      sealer.seal(sealer.unseal(sealed, owner), owner),
    ])
  }
  // One epoch names one content of what the edges hold, and they hold sealed texts.
  if ((await readEntry(tx, tenantId)) !== before) {
    await tx.query('update tenants set epoch = epoch + 1 where tenant_id = $1', [tenantId])
  }
  const after = { rewrapped: rows.length }
  await insertAudit(tx, { actor, tenantId, action: 'secrets.rewrapped', after })
  return rows.length
}

async function readEntry(tx: Queryable, tenantId: string): Promise<string> {
  return JSON.stringify((await createTenantStore(tx).findProjection(tenantId))?.entry ?? null)
}

/**
 * Opens one stored secret for every key that any is sealed under.
 * @returns null when our keys open all of them, else why not, fit for an operator
 */
export async function findMasterKeyFault(db: Queryable, sealer: Sealer): Promise<string | null> {
  for (const { owner, sealed } of await createCredentialStore(db).listSealedSamples()) {
    try {
      sealer.unseal(sealed, owner)
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
      return `MASTER_KEY does not open what is stored: ${error.message}`
    }
  }
  return null
}

/** How long an answer about the keys stands. */
const faultAgeMaxMs = 5_000

/**
 * The same for `/readyz` and `/metrics`, read from Postgres at most every five seconds. Postgres
 * being away is no fault of the key. Which secret it is stands in the log alone.
 * @param nowMs the monotonic clock
 */
export function createMasterKeyCheck(options: {
  postgres: Queryable
  sealer: Sealer
  log: Log
  metrics: Metrics
  nowMs: () => number
}): () => Promise<string | null> {
  const { postgres, sealer, log, nowMs } = options
  let asked: { fault: Promise<string | null>; atMs: number } | null = null
  let last: string | null = null
  const ask = async () => {
    const fault = await findMasterKeyFault(postgres, sealer).catch(() => last)
    if (fault !== null && fault !== last) log.error({ fault }, 'stored secrets cannot be opened')
    last = fault
    return fault === null ? null : 'MASTER_KEY does not open what is stored'
  }
  const check = () => {
    if (asked === null || nowMs() - asked.atMs > faultAgeMaxMs) {
      asked = { fault: ask(), atMs: nowMs() }
    }
    return asked.fault
  }
  options.metrics.gauge(
    'di_master_key_opens_stored',
    'Whether the master keys of this process open the secrets in Postgres',
    {
      collect() {
        // The answer before this one: metrics do not wait for Postgres.
        void check()
        this.set(last === null ? 1 : 0)
      },
    },
  )
  return check
}
