/** Checks at start that MASTER_KEY opens the stored secrets. */

import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { ConfigError } from '#shared/io/process/config.ts'
import { findSecretsFault } from '#shared/io/tenants/sealed-secret-store.ts'

/**
 * Opens one stored secret per master key in use.
 * @throws ConfigError when neither MASTER_KEY nor MASTER_KEY_PREVIOUS opens one of them
 */
export async function requireMasterKey(db: Queryable, sealer: Sealer): Promise<void> {
  const fault = await findSecretsFault(db, sealer)
  if (fault !== null) throw new ConfigError([`MASTER_KEY does not open what is stored: ${fault}`])
}
