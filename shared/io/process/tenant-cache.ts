/**
 * A cache with a limit per tenant: entries of one tenant never evict those of another. The least
 * recently used entry is evicted first.
 */
import { LRUCache } from 'lru-cache'

type TenantCache<Value extends object | string | number | boolean> = {
  get: (tenantId: string, key: string) => Value | undefined
  set: (tenantId: string, key: string, value: Value) => void
}

type TenantCacheBounds = {
  /** Maximum number of tenants; the least recently used is evicted first. */
  tenantsMax: number
  /** Entries of one tenant. */
  entriesMax: number
  /** Lifetime of an entry after it was set; unlimited when left out. */
  ttlMs?: number
}

/** @param nowMs a monotonic clock above 0; the process's own when left out */
export function createTenantCache<Value extends object | string | number | boolean>(
  { tenantsMax, entriesMax, ttlMs }: TenantCacheBounds,
  nowMs: () => number = () => performance.now(),
): TenantCache<Value> {
  const tenants = new LRUCache<string, LRUCache<string, Value>>({ max: tenantsMax })
  const createEntries = () =>
    ttlMs === undefined
      ? new LRUCache<string, Value>({ max: entriesMax })
      : new LRUCache<string, Value>({
          max: entriesMax,
          ttl: ttlMs,
          ttlResolution: 0,
          perf: { now: nowMs },
        })
  return {
    get: (tenantId, key) => tenants.get(tenantId)?.get(key),
    set: (tenantId, key, value) => {
      let entries = tenants.get(tenantId)
      if (entries === undefined) {
        entries = createEntries()
        tenants.set(tenantId, entries)
      }
      entries.set(key, value)
    },
  }
}
