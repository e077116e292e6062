/**
 * Looks up the holder of an API key. Any key that was not found recently may be a guess: whether it
 * exists is asked for many keys at once, in turn by source address, so guesses never delay tenants.
 * A key that does not exist is cached as unknown for a second.
 */
import { LRUCache } from 'lru-cache'
import {
  keyCacheMax,
  keyCacheMs,
  unknownKeyCacheMax,
  unknownKeyCacheMs,
} from '#shared/core/base/limits/rest-api.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import { createGuessScreen } from '#shared/io/http/guess-screen.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { KeyHolder, TenantStore } from '#shared/io/tenants/tenant-store.ts'

/** @param address of the client: many unknown keys of one address delay no other address */
export type FindKeyHolder = (keyHash: Buffer, address: string) => Promise<KeyHolder | null>

/**
 * Limits look-ups of unknown keys.
 * @param store queries Postgres
 * @param monotonicMs a clock that never goes back
 * @returns the look-up, limited. A new key works at once, or within a second if it was tried just
 *   before its creation.
 * @throws Problem unavailable when too many unknown keys are looked up
 */
export function createFindKeyHolder(
  store: Pick<TenantStore, 'findTenantByApiKey' | 'findExistingApiKeys'>,
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
  const screen = createGuessScreen(store.findExistingApiKeys)

  const noteMissing = (id: string): null => {
    lookups.inc({ outcome: 'not_found' })
    found.delete(id)
    unknown.set(id, true)
    return null
  }
  return async (keyHash, address) => {
    const id = keyHash.toString('base64')
    if (unknown.has(id)) {
      lookups.inc({ outcome: 'remembered' })
      return null
    }
    if (!found.has(id)) {
      const exists = await screen.exists(keyHash, address)
      if (exists === null) {
        lookups.inc({ outcome: 'refused' })
        throw unavailable('Too many unknown API keys are being looked up.')
      }
      if (!exists) return noteMissing(id)
    }
    const holder = await store.findTenantByApiKey(keyHash)
    if (holder === null) return noteMissing(id)
    lookups.inc({ outcome: 'found' })
    found.set(id, true)
    return holder
  }
}
