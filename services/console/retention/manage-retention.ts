/** An operator's change of how long a tenant's data is kept. The job `retention` acts on it. */
import type { RetainedKind, RetentionSetting } from '#shared/core/tenants/retention.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { setRetention } from '#shared/io/retention/retention-store.ts'
import type { TenantView } from '#shared/io/tenants/tenant-view.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/**
 * Sets some of a tenant's retention periods. Older data is removed within seconds.
 * @returns the tenant after the change
 * @throws Problem tenant_not_found
 */
export async function setTenantRetention(
  deps: { postgres: Postgres },
  change: {
    tenantId: string
    settings: Partial<Record<RetainedKind, RetentionSetting>>
    actor: string
  },
): Promise<TenantView> {
  const { tenantId, settings, actor } = change
  return deps.postgres.transaction(async (tx) => {
    const before = await requireTenant(tx, tenantId)
    await setRetention(tx, tenantId, settings)
    const after = await requireTenant(tx, tenantId)
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'tenant.retention_set',
      before: before.retention,
      after: after.retention,
    })
    return after
  })
}
