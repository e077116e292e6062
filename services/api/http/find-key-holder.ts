/**
 * Looks up the holder of an API key. Any key that was not found recently may be a guess: these
 * look-ups share a small semaphore, so guesses never delay tenants, and a key that does not exist
 * is cached as unknown for a second.
 */
import { LRUCache } from 'lru-cache'
import {
  keyCacheMax,
  keyCacheMs,
  unknownKeyCacheMax,
  unknownKeyCacheMs,
  unverifiedKeyLookups,
} from '#shared/core/base/limits/rest-api.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'
import type { KeyHolder, TenantStore } from '#shared/io/tenants/tenant-store.ts'

type FindKeyHolder = TenantStore['findTenantByApiKey']

/**
 * Limits look-ups of unknown keys.
 * @param lookUp queries Postgres
 * @param monotonicMs a clock that never goes back
 * @returns the same look-up, limited. A new key works at once, or within a second if it was tried
 *   just before its creation.
 * @throws Problem unavailable when too many unknown keys are looked up
 */
export function createFindKeyHolder(
  lookUp: FindKeyHolder,
  metrics: Metrics,
  monotonicMs: () => number,
): FindKeyHolder {
  const lookups = metrics.counter<'outcome'>(
    'di_api_key_lookups_total',
    'Look-ups of API keys: found, not found, cached as unknown, or rejected at the limit',
    ['outcome'],
  )
  const clock = { ttlResolution: 0, perf: { now: monotonicMs } }
  const found = new LRUCache<string, true>({ max: keyCacheMax, ttl: keyCacheMs, ...clock })
  const unknown = new LRUCache<string, true>({
    max: unknownKeyCacheMax,
    ttl: unknownKeyCacheMs,
    ...clock,
  })
  const semaphore = createTenantSemaphore(unverifiedKeyLookups)

  const lookUpOnce = async (keyHash: Buffer, id: string): Promise<KeyHolder | null> => {
    const holder = await lookUp(keyHash)
    lookups.inc({ outcome: holder === null ? 'not_found' : 'found' })
    if (holder === null) {
      found.delete(id)
      unknown.set(id, true)
    } else {
      found.set(id, true)
    }
    return holder
  }
  const lookUpWithPermit = async (keyHash: Buffer, id: string): Promise<KeyHolder | null> => {
    const permit = await semaphore.acquire('')
    if (permit === null) {
      lookups.inc({ outcome: 'refused' })
      throw unavailable('Too many unknown API keys are being looked up.')
    }
    try {
      return await lookUpOnce(keyHash, id)
    } finally {
      permit.release()
    }
  }
  return async (keyHash) => {
    const id = keyHash.toString('base64')
    if (unknown.has(id)) {
      lookups.inc({ outcome: 'remembered' })
      return null
    }
    return found.has(id) ? lookUpOnce(keyHash, id) : lookUpWithPermit(keyHash, id)
  }
}
