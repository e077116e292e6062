// An edge's policies are compiled while a tenant uses them, and no longer.
import { beforeEach, describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import {
  type ActivePolicies,
  createActivePolicies,
} from '#shared/io/tenants/directory/active-policies.ts'

let unreadable: string[]
let policies: ActivePolicies

beforeEach(() => {
  unreadable = []
  policies = createActivePolicies((hash) => unreadable.push(hash))
})

describe('the policies of an edge', () => {
  it('are compiled when a tenant uses them and dropped after the last use', () => {
    for (const hash of ['a', 'b', 'c']) policies.setDocument(hash, defaultPolicy)
    expect(policies.count()).toEqual({ documents: 3, compiled: 0 })
    expect(policies.use('acme', 'a')).toMatchObject({ hash: 'a' })
    expect(policies.use('globex', 'a')).toBe(policies.use('acme', 'a'))
    expect(policies.count()).toEqual({ documents: 3, compiled: 1 })
    policies.use('acme', 'b')
    expect(policies.count()).toEqual({ documents: 3, compiled: 2 })
    policies.release('globex')
    expect(policies.count()).toEqual({ documents: 3, compiled: 1 })
  })

  it('are as many as are in use, after any number of versions', () => {
    for (let version = 0; version < 100; version++) {
      policies.setDocument(`v${version}`, defaultPolicy)
      expect(policies.use('acme', `v${version}`)).not.toBeNull()
      policies.setDocument(`v${version - 1}`, undefined)
    }
    expect(policies.count()).toEqual({ documents: 1, compiled: 1 })
  })

  it('reach tenants that had to wait for them', () => {
    expect(policies.use('acme', 'late')).toBeNull()
    expect(policies.use('globex', 'late')).toBeNull()
    expect(policies.setDocument('late', defaultPolicy)?.tenantIds).toEqual(['acme', 'globex'])
    expect(policies.use('acme', 'late')).toMatchObject({ hash: 'late' })
  })

  it('are not compiled again for the same document', () => {
    policies.setDocument('a', defaultPolicy)
    const compiled = policies.use('acme', 'a')
    expect(policies.setDocument('a', structuredClone(defaultPolicy))).toBeNull()
    expect(policies.use('acme', 'a')).toBe(compiled)
  })

  it('stay unchanged when an unreadable document comes, which is logged once', () => {
    policies.setDocument('a', { version: 'nonsense' })
    expect(unreadable).toEqual([])
    expect(policies.use('acme', 'a')).toBeNull()
    policies.setDocument('a', defaultPolicy)
    const compiled = policies.use('acme', 'a')
    policies.setDocument('a', null)
    expect(policies.use('acme', 'a')).toBe(compiled)
    expect(unreadable).toEqual(['a', 'a'])
  })
})
