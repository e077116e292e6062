/**
 * Sealed secrets in Postgres and their keys: finds secrets sealed under another key or in another
 * form, seals them again, and checks that the configured keys open all secrets. Sealing again does
 * not change a secret; when the edges have its sealed text, the tenant's epoch rises in the same
 * transaction.
 */

import type { Sealer } from '#shared/io/keys/console-keys.ts'
import {
  type Opener,
  type SecretKind,
  toHeadSql,
  UnsealError,
} from '#shared/io/keys/sealed-secrets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createCredentialStore } from './credential-store.ts'
import { createTenantStore } from './tenant-store.ts'

/** Every sealed text of tenants: secrets, install roots, Play keys by their app, address keys. */
const sealedTexts = `(
  select tenant_id, kind, secret_id::text as id, sealed from tenant_secrets
  union all select tenant_id, 'install_root', epoch::text, sealed from install_roots
  union all select tenant_id, 'play', app_id, play_keys_sealed from tenant_apps
  union all select tenant_id, 'address', '', sealed from address_keys
) as texts`

/** Counts the secrets with one of these heads, and the tenants with a sealed secret. */
export async function countSealed(
  db: Queryable,
  heads: readonly string[],
): Promise<{ already: number; tenants: number }> {
  const { rows } = await db.query<{ already: number; tenants: number }>(
    `select count(*) filter (where ${toHeadSql('sealed')} = any($1)) as already,
       count(distinct tenant_id) as tenants
     from ${sealedTexts} where sealed is not null`,
    [heads],
  )
  return rows[0]!
}

/** Lists tenants with a secret, in any state, that has none of these heads. */
export async function listTenantsToRewrap(
  db: Queryable,
  heads: readonly string[],
): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select distinct tenant_id from ${sealedTexts}
     where sealed is not null and ${toHeadSql('sealed')} <> all($1) order by tenant_id`,
    [heads],
  )
  return rows.map((row) => row.tenant_id)
}

/**
 * Seals all secrets of a tenant, in any state, under the sealer's key. Call it in a transaction,
 * under the tenant's lock.
 * @returns how many secrets were sealed under another key
 * @throws UnsealError when a secret cannot be opened; roll the transaction back then
 */
export async function rewrapTenant(
  tx: Queryable,
  sealer: Sealer,
  { tenantId, actor }: { tenantId: string; actor: string },
): Promise<number> {
  // The tenant's row first, as in every step of a rotation.
  await tx.query('select 1 from tenants where tenant_id = $1 for no key update', [tenantId])
  const { rows } = await tx.query<{ id: string; kind: TextKind; sealed: string }>(
    `select id, kind, sealed from ${sealedTexts}
     where tenant_id = $1 and sealed is not null and ${toHeadSql('sealed')} <> all($2)
     order by kind, id`,
    [tenantId, sealer.currentHeads()],
  )
  if (rows.length === 0) return 0
  const before = await readEntry(tx, tenantId)
  for (const { id, kind, sealed } of rows) {
    const owner = { tenantId, kind }
    const again = sealer.seal(sealer.unseal(sealed, owner), owner)
    await tx.query(updates[kind], [tenantId, id, again, sealed])
  }
  // The edges have sealed texts, and one epoch identifies one content.
  if ((await readEntry(tx, tenantId)) !== before) {
    await tx.query('update tenants set epoch = epoch + 1 where tenant_id = $1', [tenantId])
  }
  const after = { rewrapped: rows.length }
  await insertAudit(tx, { actor, tenantId, action: 'secrets.rewrapped', after })
  return rows.length
}

type TextKind = SecretKind | 'install_root' | 'play' | 'address'

/** A text that was blanked or replaced without the tenant's lock stays as it is. */
const secretUpdate = `update tenant_secrets set sealed = $3
  where tenant_id = $1 and secret_id = $2::bigint and sealed = $4`
const updates: Record<TextKind, string> = {
  hmac: secretUpdate,
  webhook: secretUpdate,
  install_root: `update install_roots set sealed = $3
    where tenant_id = $1 and epoch = $2::integer and sealed = $4`,
  play: `update tenant_apps set play_keys_sealed = $3
    where tenant_id = $1 and platform = 'android' and app_id = $2 and play_keys_sealed = $4`,
  address: `update address_keys set sealed = $3
    where tenant_id = $1 and $2::text = '' and sealed = $4`,
}

async function readEntry(tx: Queryable, tenantId: string): Promise<string> {
  return JSON.stringify((await createTenantStore(tx).findProjection(tenantId))?.entry ?? null)
}

/**
 * Opens one stored secret per key that secrets of these kinds are sealed under.
 * @returns null when the configured keys open all of them, else the reason, for an operator
 */
export async function findSecretsFault(
  db: Queryable,
  opener: Opener,
  kinds: readonly SecretKind[] = ['hmac', 'webhook'],
): Promise<string | null> {
  for (const { owner, sealed } of await createCredentialStore(db).listSealedSamples(kinds)) {
    try {
      opener.unseal(sealed, owner)
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error
      return error.message
    }
  }
  return null
}

/** How long the result of a check is reused. */
const faultAgeMaxMs = 5_000

/**
 * `findSecretsFault` of webhook secrets for `/readyz` and `/metrics`, at most every five seconds.
 * While Postgres is away the last result applies. Only the log names the secret.
 * @param nowMs the monotonic clock
 */
export function createSecretsCheck(options: {
  postgres: Queryable
  opener: Opener
  log: Log
  metrics: Metrics
  nowMs: () => number
}): () => Promise<string | null> {
  const { postgres, opener, log, nowMs } = options
  let checked: { fault: Promise<string | null>; atMs: number } | null = null
  let last: string | null = null
  const readFault = async () => {
    const fault = await findSecretsFault(postgres, opener, ['webhook']).catch(() => last)
    if (fault !== null && fault !== last) log.error({ fault }, 'stored secrets cannot be opened')
    last = fault
    return fault === null ? null : 'WEBHOOK_KEY does not open what is stored'
  }
  const check = () => {
    if (checked === null || nowMs() - checked.atMs > faultAgeMaxMs) {
      checked = { fault: readFault(), atMs: nowMs() }
    }
    return checked.fault
  }
  options.metrics.gauge(
    'di_master_key_opens_stored',
    'Whether the keys of this process open the secrets in Postgres',
    {
      collect() {
        // The previous result: metrics do not wait for Postgres.
        void check()
        this.set(last === null ? 1 : 0)
      },
    },
  )
  return check
}
