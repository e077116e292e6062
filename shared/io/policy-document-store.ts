/**
 * Policy documents by their content address, for processes that do not watch the tenant directory:
 * from memory, else from the KV bucket where there is a connection to it, else from Postgres, where
 * every version stays for good.
 */
import { LRUCache } from 'lru-cache'
import { policyCopiesBytesMax } from '#shared/core/limits.ts'
import { policyKey } from '#shared/core/messages.ts'
import { defaultPolicy, type Policy, policySchema, toPolicyHash } from '#shared/core/policy.ts'
import type { Nats } from './nats.ts'
import { createPolicyStore } from './policy-store.ts'
import type { Queryable } from './postgres.ts'
import { openTenantsBucket } from './streams.ts'

export type PolicyDocuments = {
  /**
   * @returns the document, or null when nobody knows it or it is none
   * @throws when neither store can be asked
   */
  findPolicy: (policyHash: string) => Promise<Policy | null>
}

/** @param nats null where only Postgres is to be asked */
export function createPolicyDocuments(nats: Nats | null, postgres: Queryable): PolicyDocuments {
  const { findDocument } = createPolicyStore(postgres)
  // Documents are immutable, so a copy is good for ever.
  const copies = new LRUCache<string, Policy>({ maxSize: policyCopiesBytesMax })
  const defaultHash = toPolicyHash(defaultPolicy)
  return {
    findPolicy: async (policyHash) => {
      const copy = policyHash === defaultHash ? defaultPolicy : copies.get(policyHash)
      if (copy !== undefined) return copy
      const projected = nats === null ? null : await findProjected(nats, policyHash)
      const text = projected ?? (await findDocument(policyHash))
      const policy = text === null ? null : parse(text)
      if (policy !== null) copies.set(policyHash, policy, { size: text!.length })
      return policy
    },
  }
}

async function findProjected(nats: Nats, policyHash: string): Promise<string | null> {
  try {
    const bucket = await openTenantsBucket(nats)
    const entry = await bucket.get(policyKey(policyHash))
    return entry === null || entry.operation !== 'PUT' ? null : entry.string()
  } catch {
    return null
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
