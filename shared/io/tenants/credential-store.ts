/**
 * A tenant's credentials in Postgres and the steps of their rotation. Constraints of the database
 * guarantee that a tenant never has two active secrets of a kind: a new HMAC secret cannot be
 * written while the old one is active, and cannot be activated before the old one is retired.
 */
import type { StoredKey } from '#shared/core/tenants/credentials.ts'
import type { SecretKind, SecretOwner } from '#shared/io/keys/sealed-secrets.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { insertAddressKey } from './address-key-store.ts'
import { insertFirstRoot } from './install-root-store.ts'

/** A sealed secret; only its last four characters are in plain text. */
export type SealedSecret = { sealed: string; last4: string }

type RotationStep = {
  /** The epoch the tenant has after this step. */
  epoch: number
  /** Last four characters of the secret before the rotation; null if there was none. */
  oldLast4: string | null
}

type CredentialStore = {
  /** Inserts the secrets and the key of a new tenant, all active. */
  insertCredentials: (
    tenantId: string,
    credentials: {
      hmac: SealedSecret
      webhook: SealedSecret
      apiKey: StoredKey
      /** Sealed. */
      installRoot: string
      /** Sealed. */
      addressKey: string
    },
  ) => Promise<void>
  /**
   * The first step of a rotation: switches the active HMAC secret off and stores the new one as
   * pending. It replaces an unfinished rotation.
   */
  beginHmacRotation: (tenantId: string, next: SealedSecret) => Promise<RotationStep>
  /**
   * The last step: retires the old secret and activates the new one.
   * @param begunEpoch the epoch of the first step
   * @returns null, without a change, when the tenant changed in the meantime
   */
  finishHmacRotation: (tenantId: string, begunEpoch: number) => Promise<RotationStep | null>
  /**
   * Undoes an unfinished rotation: the old secret is active again, and the new one, which was never
   * returned, is removed.
   * @returns null when none was under way
   */
  undoHmacRotation: (tenantId: string) => Promise<RotationStep | null>
  /** Tenants with an unfinished rotation, running or abandoned. */
  listRotating: () => Promise<string[]>
  /** One stored secret for every key that secrets of these kinds are sealed under. */
  listSealedSamples: (
    kinds: readonly SecretKind[],
  ) => Promise<{ owner: SecretOwner; sealed: string }[]>
  /** Replaces the webhook secret; returns the old one's last four characters. */
  replaceWebhookSecret: (tenantId: string, next: SealedSecret) => Promise<string | null>
  /** Replaces the API key; returns the old one's last four characters. */
  replaceApiKey: (tenantId: string, next: StoredKey) => Promise<string | null>
}

/** @param tx a transaction: every step is several statements */
export function createCredentialStore(tx: Queryable): CredentialStore {
  return {
    insertCredentials: async (tenantId, { hmac, webhook, apiKey, installRoot, addressKey }) => {
      await insertSecret(tx, tenantId, 'hmac', 'active', hmac)
      await insertSecret(tx, tenantId, 'webhook', 'active', webhook)
      await insertApiKey(tx, tenantId, apiKey)
      await insertFirstRoot(tx, tenantId, installRoot)
      await insertAddressKey(tx, tenantId, addressKey)
    },
    beginHmacRotation: (tenantId, next) => beginHmacRotation(tx, tenantId, next),
    finishHmacRotation: (tenantId, epoch) => finishHmacRotation(tx, tenantId, epoch),
    undoHmacRotation: (tenantId) => undoHmacRotation(tx, tenantId),
    listRotating: async () => {
      const { rows } = await tx.query<{ tenant_id: string }>(
        `select distinct tenant_id from tenant_secrets where state in ('off', 'pending')
         order by tenant_id`,
      )
      return rows.map((row) => row.tenant_id)
    },
    listSealedSamples: async (kinds) => {
      // The first two parts of a sealed text are its form and its key's id.
      const { rows } = await tx.query<{ tenant_id: string; kind: SecretKind; sealed: string }>(
        `select distinct on (split_part(sealed, '.', 1), split_part(sealed, '.', 2))
           tenant_id, kind, sealed
         from tenant_secrets where sealed is not null and kind = any($1)
         order by split_part(sealed, '.', 1), split_part(sealed, '.', 2), secret_id desc`,
        [kinds],
      )
      return rows.map((row) => ({
        owner: { tenantId: row.tenant_id, kind: row.kind },
        sealed: row.sealed,
      }))
    },
    replaceWebhookSecret: async (tenantId, next) => {
      const old = await retire(tx, tenantId, 'webhook', ['active'])
      await forgetRetired(tx, tenantId, 'webhook', 0)
      await insertSecret(tx, tenantId, 'webhook', 'active', next)
      return old
    },
    replaceApiKey: async (tenantId, next) => {
      const { rows } = await tx.query<{ last4: string }>(
        `update api_keys set state = 'retired', retired_at = clock_timestamp()
         where tenant_id = $1 and state = 'active' and name is null returning last4`,
        [tenantId],
      )
      await insertApiKey(tx, tenantId, next)
      return rows[0]?.last4 ?? null
    },
  }
}

async function beginHmacRotation(
  tx: Queryable,
  tenantId: string,
  next: SealedSecret,
): Promise<RotationStep> {
  const epoch = await raiseEpoch(tx, tenantId)
  await tx.query(
    `delete from tenant_secrets where tenant_id = $1 and kind = 'hmac' and state = 'pending'`,
    [tenantId],
  )
  const { rows } = await tx.query<{ last4: string }>(
    `update tenant_secrets set state = 'off'
     where tenant_id = $1 and kind = 'hmac' and state in ('active', 'off') returning last4`,
    [tenantId],
  )
  await insertSecret(tx, tenantId, 'hmac', 'pending', next)
  return { epoch, oldLast4: rows[0]?.last4 ?? null }
}

async function finishHmacRotation(
  tx: Queryable,
  tenantId: string,
  begunEpoch: number,
): Promise<RotationStep | null> {
  const { rows } = await tx.query<{ epoch: number }>(
    'update tenants set epoch = epoch + 1 where tenant_id = $1 and epoch = $2 returning epoch',
    [tenantId, begunEpoch],
  )
  if (rows[0] === undefined) return null
  const oldLast4 = await retire(tx, tenantId, 'hmac', ['off'])
  await forgetRetired(tx, tenantId, 'hmac', 1)
  await tx.query(
    `update tenant_secrets set state = 'active'
     where tenant_id = $1 and kind = 'hmac' and state = 'pending'`,
    [tenantId],
  )
  return { epoch: rows[0].epoch, oldLast4 }
}

async function undoHmacRotation(tx: Queryable, tenantId: string): Promise<RotationStep | null> {
  // The tenant's row first, as in every other step: steps of two processes then never cross.
  await tx.query('select 1 from tenants where tenant_id = $1 for no key update', [tenantId])
  const gone = await tx.query(
    `delete from tenant_secrets where tenant_id = $1 and kind = 'hmac' and state = 'pending'`,
    [tenantId],
  )
  const { rows, rowCount } = await tx.query<{ last4: string }>(
    `update tenant_secrets set state = 'active'
     where tenant_id = $1 and kind = 'hmac' and state = 'off' returning last4`,
    [tenantId],
  )
  if (gone.rowCount + rowCount === 0) return null
  return { epoch: await raiseEpoch(tx, tenantId), oldLast4: rows[0]?.last4 ?? null }
}

async function raiseEpoch(tx: Queryable, tenantId: string): Promise<number> {
  const { rows } = await tx.query<{ epoch: number }>(
    'update tenants set epoch = epoch + 1 where tenant_id = $1 returning epoch',
    [tenantId],
  )
  return rows[0]!.epoch
}

async function retire(
  tx: Queryable,
  tenantId: string,
  kind: SecretKind,
  states: string[],
): Promise<string | null> {
  const { rows } = await tx.query<{ last4: string }>(
    `update tenant_secrets set state = 'retired', retired_at = clock_timestamp()
     where tenant_id = $1 and kind = $2 and state = any($3) returning last4`,
    [tenantId, kind, states],
  )
  return rows[0]?.last4 ?? null
}

/**
 * The sealed secrets of a tenant that are in use, and the HMAC secret that the last rotation
 * replaced.
 */
export async function findSealedSecrets(
  db: Queryable,
  tenantId: string,
): Promise<{ kind: SecretKind; isRetired: boolean; sealed: string }[]> {
  const { rows } = await db.query<{ kind: SecretKind; is_retired: boolean; sealed: string }>(
    `select distinct on (kind, state) kind, state = 'retired' as is_retired, sealed
     from tenant_secrets
     where tenant_id = $1 and state in ('active', 'retired') and sealed is not null
     order by kind, state, secret_id desc`,
    [tenantId],
  )
  return rows.map(({ is_retired: isRetired, ...row }) => ({ ...row, isRetired }))
}

/** Blanks all but the newest `keep` retired secrets. */
async function forgetRetired(
  tx: Queryable,
  tenantId: string,
  kind: SecretKind,
  keep: number,
): Promise<void> {
  await tx.query(
    `update tenant_secrets set sealed = null
     where tenant_id = $1 and kind = $2 and state = 'retired' and sealed is not null
       and secret_id not in (
         select secret_id from tenant_secrets
         where tenant_id = $1 and kind = $2 and state = 'retired'
         order by secret_id desc limit $3)`,
    [tenantId, kind, keep],
  )
}

async function insertSecret(
  tx: Queryable,
  tenantId: string,
  kind: SecretKind,
  state: 'active' | 'pending',
  { sealed, last4 }: SealedSecret,
): Promise<void> {
  await tx.query(
    `insert into tenant_secrets (tenant_id, kind, state, sealed, last4)
     values ($1, $2, $3, $4, $5)`,
    [tenantId, kind, state, sealed, last4],
  )
}

async function insertApiKey(tx: Queryable, tenantId: string, key: StoredKey): Promise<void> {
  await tx.query(
    `insert into api_keys (key_hash, tenant_id, state, prefix, last4)
     values ($1, $2, 'active', $3, $4)`,
    [key.hash, tenantId, key.prefix, key.last4],
  )
}
