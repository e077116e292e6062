import { describe, expect, it } from 'vitest'
import { createTenantCache } from '#shared/io/process/tenant-cache.ts'

describe('the cache of tenants', () => {
  it('evicts the least recently used entry, and no other', () => {
    const cache = createTenantCache<number>({ tenantsMax: 10, entriesMax: 2 })
    cache.set('acme', 'a', 1)
    cache.set('acme', 'b', 2)
    cache.get('acme', 'a')
    cache.set('acme', 'c', 3)
    expect(['a', 'b', 'c'].map((key) => cache.get('acme', key))).toEqual([1, undefined, 3])
  })

  it('counts the entries of a tenant against that tenant alone', () => {
    const cache = createTenantCache<number>({ tenantsMax: 10, entriesMax: 2 })
    cache.set('acme', 'a', 1)
    for (let n = 0; n < 1_000; n++) cache.set('globex', `${n}`, n)
    expect(cache.get('acme', 'a')).toBe(1)
  })

  it('evicts the least recently used tenant', () => {
    const cache = createTenantCache<number>({ tenantsMax: 2, entriesMax: 2 })
    for (const tenant of ['acme', 'globex', 'acme', 'initech']) {
      cache.get(tenant, 'a') ?? cache.set(tenant, 'a', 1)
    }
    expect(['acme', 'globex', 'initech'].map((one) => cache.get(one, 'a'))).toEqual([
      1,
      undefined,
      1,
    ])
  })

  it('keeps an entry for its lifetime', () => {
    let nowMs = 1
    const cache = createTenantCache<number>(
      { tenantsMax: 2, entriesMax: 2, ttlMs: 100 },
      () => nowMs,
    )
    cache.set('acme', 'a', 1)
    nowMs = 100
    expect(cache.get('acme', 'a')).toBe(1)
    nowMs = 102
    expect(cache.get('acme', 'a')).toBeUndefined()
  })
})
