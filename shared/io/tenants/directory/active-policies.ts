/**
 * The policies of one edge's copy of the tenant directory. A document is compiled when a tenant
 * begins to use it and dropped when the last one has left it: an edge holds as many compiled
 * policies as are in use, however many versions there ever were.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import type { Scorer } from '#shared/core/scoring/scoring.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'

/** A policy compiled once, shared by every tenant that uses it. */
export type ActivePolicy = {
  hash: string
  thresholds: Policy['thresholds']
  score: Scorer
  /** Signals that the policy declares; absent when it declares none. */
  signals?: Policy['signals']
}

export type ActivePolicies = {
  /**
   * From now on the tenant uses this policy and no other.
   * @returns null while its document is missing or cannot be read
   */
  use: (tenantId: string, hash: string) => ActivePolicy | null
  /** Releases the policy that the tenant uses. */
  release: (tenantId: string) => void
  /**
   * Takes a document; undefined takes it away from tenants to come.
   * @returns the tenants that use it, which may have had to wait for it; null when nothing changes
   */
  setDocument: (
    hash: string,
    document: unknown,
  ) => { policy: ActivePolicy; tenantIds: string[] } | null
  /** How many documents there are, and how many are compiled. */
  count: () => { documents: number; compiled: number }
}

/** @param onUnreadable called for a document in use that is no policy */
export function createActivePolicies(onUnreadable: (hash: string) => void): ActivePolicies {
  const documents = new Map<string, unknown>()
  const compiled = new Map<string, ActivePolicy>()
  const usersOf = new Map<string, Set<string>>()
  const hashOf = new Map<string, string>()

  /** Keeps the previous compiled policy when the document is not valid. */
  const compile = (hash: string): ActivePolicy | null => {
    if (!documents.has(hash)) return null
    const parsed = policySchema.safeParse(documents.get(hash))
    if (!parsed.success) {
      onUnreadable(hash)
      return null
    }
    const { thresholds, signals } = parsed.data
    const policy = { hash, thresholds, score: compilePolicy(parsed.data), signals }
    compiled.set(hash, policy)
    return policy
  }

  const release = (tenantId: string): void => {
    const hash = hashOf.get(tenantId)
    if (hash === undefined) return
    hashOf.delete(tenantId)
    const users = usersOf.get(hash)
    users?.delete(tenantId)
    if (users?.size !== 0) return
    usersOf.delete(hash)
    compiled.delete(hash)
  }

  return {
    use: (tenantId, hash) => {
      if (hashOf.get(tenantId) !== hash) release(tenantId)
      hashOf.set(tenantId, hash)
      const users = usersOf.get(hash) ?? new Set()
      usersOf.set(hash, users.add(tenantId))
      return compiled.get(hash) ?? compile(hash)
    },
    release,
    setDocument: (hash, document) => {
      if (document === undefined) {
        documents.delete(hash)
        compiled.delete(hash)
        return null
      }
      const isKnown = compiled.has(hash) && isDeepStrictEqual(documents.get(hash), document)
      documents.set(hash, document)
      const users = usersOf.get(hash)
      const policy = users === undefined || isKnown ? null : compile(hash)
      return policy === null ? null : { policy, tenantIds: [...users!] }
    },
    count: () => ({ documents: documents.size, compiled: compiled.size }),
  }
}
