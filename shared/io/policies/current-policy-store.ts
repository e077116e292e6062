/**
 * Finds a tenant's present policy, for processes that do not watch the tenant directory. Each call
 * reads the version from Postgres; documents never change, so they are cached.
 */
import type { TenantPolicy } from '#shared/core/signals/signal-list.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { createPolicyDocuments } from './policy-document-store.ts'

export type CurrentPolicyStore = {
  /**
   * @returns null when there is no such tenant
   * @throws when its document is missing or cannot be read by this release
   */
  findCurrentPolicy: (tenantId: string) => Promise<TenantPolicy | null>
}

export function createCurrentPolicyStore(db: Queryable): CurrentPolicyStore {
  const { findPolicy } = createPolicyDocuments(db)
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
      const policy = await findPolicy(policyHash)
      if (policy === null) throw new Error(`policy document ${policyHash} is missing or unreadable`)
      return { policy, version, policyHash }
    },
  }
}
