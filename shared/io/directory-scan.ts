/**
 * Looks through the tenant directory in NATS for what is still sealed under another key: Postgres
 * may have been sealed again by somebody who could not tell the edges any more.
 */
import type { KvEntry } from 'nats'
import { tenantKey } from '#shared/core/messages.ts'
import { readEntries } from './kv-entries.ts'
import type { Nats } from './nats.ts'
import { toSealingKeyId } from './sealed-secrets.ts'
import { openTenantsBucket } from './streams.ts'
import { readJson } from './tenant-directory.ts'

/**
 * Reads every tenant's entry once.
 * @returns the tenants whose entry holds a text sealed under another key than this one
 * @throws when the bucket cannot be read within ten seconds
 */
export async function listProjectedElsewhere(nats: Nats, keyId: string): Promise<string[]> {
  const entries = await readEntries(nats, await openTenantsBucket(nats), tenantKey('*'))
  return [...entries.values()]
    .filter((entry) => entry.operation === 'PUT' && isSealedElsewhere(entry, keyId))
    .map(({ key }) => key.slice(tenantKey('').length))
    .sort()
}

/** Whichever of an entry's fields are sealed texts. */
function isSealedElsewhere(entry: KvEntry, keyId: string): boolean {
  const value = readJson(entry)
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some((text) => {
    const sealedUnder = typeof text === 'string' ? toSealingKeyId(text) : null
    return sealedUnder !== null && sealedUnder !== keyId
  })
}
