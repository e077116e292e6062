/**
 * Finds policy documents by their hash, for processes that do not watch the tenant directory: from
 * memory, else from Postgres, which keeps every version.
 */
import { LRUCache } from 'lru-cache'
import { policyCacheBytesMax } from '#shared/core/base/limits/tenants.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { createPolicyStore } from './policy-store.ts'

type PolicyDocuments = {
  /**
   * @returns the document, or null when it is not stored or is not a policy
   * @throws when Postgres does not answer
   */
  findPolicy: (policyHash: string) => Promise<Policy | null>
}

export function createPolicyDocuments(postgres: Queryable): PolicyDocuments {
  const { findDocument } = createPolicyStore(postgres)
  // Documents are immutable.
  const copies = new LRUCache<string, Policy>({ maxSize: policyCacheBytesMax })
  const defaultHash = toPolicyHash(defaultPolicy)
  return {
    findPolicy: async (policyHash) => {
      const copy = policyHash === defaultHash ? defaultPolicy : copies.get(policyHash)
      if (copy !== undefined) return copy
      const text = await findDocument(policyHash)
      const policy = text === null ? null : parse(text)
      if (policy !== null) copies.set(policyHash, policy, { size: text!.length })
      return policy
    },
  }
}

function parse(text: string): Policy | null {
  try {
    const parsed = policySchema.safeParse(JSON.parse(text))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}
