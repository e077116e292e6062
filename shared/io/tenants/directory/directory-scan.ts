/**
 * Looks through the tenant directory in NATS for what is still sealed under another key: Postgres
 * may have been sealed again by a console that failed before it updated the edges.
 */
import type { KvEntry } from 'nats'
import { tenantKey } from '#shared/core/tenants/directory-entries.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { type Sealer, toSealingKeyId } from '#shared/io/tenants/sealed-secrets.ts'
import { splitProof, toProvingKeyId } from './proofs.ts'

/**
 * Reads every tenant's entry once.
 * @returns the tenants whose entry is proven, or holds a text sealed, under another key than the
 *   one that seals
 * @throws when the bucket cannot be read within ten seconds
 */
export async function listTenantsToReproject(nats: Nats, sealer: Sealer): Promise<string[]> {
  const entries = await readEntries(nats, await openTenantsBucket(nats), tenantKey('*'))
  const provingKeyId = sealer.proverOf('directory entry').keyId
  const isElsewhere = (entry: KvEntry) => {
    const { proof, text } = splitProof(entry.string())
    // Of a tenant that was removed nothing is left to seal again.
    if (text === 'null') return false
    return toProvingKeyId(proof) !== provingKeyId || isSealedElsewhere(text, sealer.keyId)
  }
  return [...entries.values()]
    .filter((entry) => entry.operation === 'PUT' && isElsewhere(entry))
    .map(({ key }) => key.slice(tenantKey('').length))
    .sort()
}

/** Whichever of an entry's fields are sealed texts. */
function isSealedElsewhere(text: string, keyId: string): boolean {
  const value = parse(text)
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some((field) => {
    const sealedUnder = typeof field === 'string' ? toSealingKeyId(field) : null
    return sealedUnder !== null && sealedUnder !== keyId
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
