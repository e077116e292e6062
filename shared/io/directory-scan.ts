/**
 * Looks through the tenant directory in NATS for what is still sealed under another key: Postgres
 * may have been sealed again by somebody who could not tell the edges any more.
 */
import type { KV, KvEntry, QueuedIterator } from 'nats'
import { tenantKey } from '#shared/core/messages.ts'
import { within } from './pause.ts'
import { toSealingKeyId } from './sealed-secrets.ts'
import { readJson } from './tenant-directory.ts'

const scanMaxMs = 15_000

/**
 * Reads every tenant's entry once.
 * @returns the tenants whose entry holds a text sealed under another key than this one
 * @throws when the bucket cannot be read within fifteen seconds
 */
export async function listProjectedElsewhere(bucket: KV, keyId: string): Promise<string[]> {
  let watch: QueuedIterator<KvEntry> | undefined
  const found = new Set<string>()
  try {
    const scanned = new Promise<void>((resolve, reject) => {
      const follow = async () => {
        watch = await bucket.watch({ key: tenantKey('*'), initializedFn: resolve })
        for await (const entry of watch) {
          const tenantId = entry.key.slice(tenantKey('').length)
          if (entry.operation === 'PUT' && isSealedElsewhere(entry, keyId)) found.add(tenantId)
          else found.delete(tenantId)
        }
        reject(new Error('the watch of the tenants bucket ended'))
      }
      follow().catch(reject)
    })
    if (!(await within(scanned, scanMaxMs))) throw new Error('the tenants bucket cannot be read')
  } finally {
    watch?.stop()
  }
  return [...found].sort()
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
