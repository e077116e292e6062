/**
 * Looks through the tenant directory in NATS for what is still sealed or proven under another key:
 * Postgres may have been sealed again by a console that failed before it updated the edges.
 */
import type { KvEntry } from 'nats'
import { edgeKey, policyKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { splitProof, toProvingKeyId } from '#shared/io/keys/proofs.ts'
import { toSealingHead } from '#shared/io/keys/sealed-secrets.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { openDirectory, putProven, readProven } from './directory-entries.ts'

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
    return toProvingKeyId(proof) !== provingKeyId || isSealedElsewhere(text, sealer)
  }
  return [...entries.values()]
    .filter((entry) => entry.operation === 'PUT' && isElsewhere(entry))
    .map(({ key }) => key.slice(tenantKey('').length))
    .sort()
}

/** Whichever of an entry's texts, at any depth, are sealed. */
function isSealedElsewhere(text: string, sealer: Sealer): boolean {
  const isElsewhere = (value: unknown): boolean => {
    if (typeof value === 'object' && value !== null) return Object.values(value).some(isElsewhere)
    return typeof value === 'string' && toSealingHead(value) !== null && !sealer.isCurrent(value)
  }
  return isElsewhere(parse(text))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/**
 * Proves everything again that a console wrote besides tenants, which come from Postgres: lists,
 * the mark that the bucket is synced, and what says that a tenant was removed.
 * @returns how many entries are still proven under another key: others wrote them meanwhile
 * @throws when NATS is away
 */
export async function proveOthersAgain(nats: Nats, sealer: Sealer): Promise<number> {
  const directory = await openDirectory(nats, sealer)
  const entries = await readEntries(nats, directory.bucket, '>')
  let left = 0
  for (const entry of entries.values()) {
    if (entry.key.startsWith(edgeKey('')) || entry.key.startsWith(policyKey(''))) continue
    const proven = readProven(directory, entry)
    const isTenant = entry.key.startsWith(tenantKey('')) && proven?.text !== 'null'
    if (proven === null || proven.byPresentKey || isTenant) continue
    try {
      await putProven(directory, entry.key, proven.text, entry.revision)
    } catch (error) {
      if (!isWrongRevision(error)) throw error
      left++
    }
  }
  return left
}
