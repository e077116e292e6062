/**
 * The policy that a tenant has now, for processes that do not watch the tenant directory. Which
 * version that is comes from Postgres at each question; the documents themselves never change, so
 * those that were read once are kept.
 */
import { defaultPolicy, type Policy, policySchema, toPolicyHash } from '#shared/core/policy.ts'
import type { TenantPolicy } from '#shared/core/signal-list.ts'
import { createPolicyStore } from './policy-store.ts'
import type { Queryable } from './postgres.ts'

export type CurrentPolicyStore = {
  /**
   * @returns null when there is no such tenant
   * @throws when its document is missing or cannot be read by this release
   */
  findCurrentPolicy: (tenantId: string) => Promise<TenantPolicy | null>
}

/** A thousand documents are a few megabytes. */
const copiesMax = 1_000

export function createCurrentPolicyStore(db: Queryable): CurrentPolicyStore {
  const { findDocument } = createPolicyStore(db)
  const copies = new Map<string, Policy>([[toPolicyHash(defaultPolicy), defaultPolicy]])
  const findPolicy = async (policyHash: string): Promise<Policy> => {
    const copy = copies.get(policyHash)
    if (copy !== undefined) return copy
    const text = await findDocument(policyHash)
    if (text === null) throw new Error(`there is no policy document ${policyHash}`)
    const policy = policySchema.parse(JSON.parse(text))
    if (copies.size >= copiesMax) copies.clear()
    copies.set(policyHash, policy)
    return policy
  }
  return {
    findCurrentPolicy: async (tenantId) => {
      const { rows } = await db.query<{ version: number; policy_hash: string }>({
        name: 'find-current-policy',
        text: `select p.version, p.policy_hash from tenants t
               join tenant_policies p on p.tenant_id = t.tenant_id and p.version = t.policy_version
               where t.tenant_id = $1`,
        values: [tenantId],
      })
      const row = rows[0]
      if (row === undefined) return null
      const { version, policy_hash: policyHash } = row
      return { policy: await findPolicy(policyHash), version, policyHash }
    },
  }
}
