/**
 * A cache whose entries belong to tenants. Each tenant has a bound of its own, so the entries of
 * one never push out those of another; the least recently used entry makes room for a new one.
 */
import { LRUCache } from 'lru-cache'

export type TenantCache<Value extends object | string | number | boolean> = {
  get: (tenantId: string, key: string) => Value | undefined
  set: (tenantId: string, key: string, value: Value) => void
}

export type TenantCacheBounds = {
  /** Tenants at once; the one that was used least recently is forgotten first. */
  tenantsMax: number
  /** Entries of one tenant. */
  entriesMax: number
  /** How long an entry is kept after it was set, in ms; without end when left out. */
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
