/** Checks at start that MASTER_KEY opens the stored secrets. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { ConfigError } from '#shared/io/process/config.ts'
import { findMasterKeyFault } from '#shared/io/tenants/sealed-secret-store.ts'
import type { Sealer } from '#shared/io/tenants/sealed-secrets.ts'

/**
 * Opens one stored secret per master key in use.
 * @throws ConfigError when neither MASTER_KEY nor MASTER_KEY_PREVIOUS opens one of them
 */
export async function requireMasterKey(db: Queryable, sealer: Sealer): Promise<void> {
  const fault = await findMasterKeyFault(db, sealer)
  if (fault !== null) throw new ConfigError([fault])
}
