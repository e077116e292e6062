/** An operator's change of how long a tenant's data is kept. The job `retention` acts on it. */
import { shortensRetention } from '#shared/core/approvals/four-eyes.ts'
import type {
  RetainedKind,
  RetentionDays,
  RetentionSetting,
} from '#shared/core/tenants/retention.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { setRetention } from '#shared/io/retention/retention-store.ts'
import type { TenantView } from '#shared/io/tenants/tenant-view.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/** The limits in force. */
export const toRetentionDays = ({ retention }: Pick<TenantView, 'retention'>): RetentionDays => ({
  events: retention.events.days,
  alerts: retention.alerts.days,
  deliveries: retention.deliveries.days,
})

/**
 * Sets some of a tenant's retention periods. Older data is removed within seconds.
 * @returns the tenant after the change
 * @throws Problem tenant_not_found, approval_required where it shortens one
 */
export async function setTenantRetention(
  deps: { postgres: Postgres },
  change: {
    tenantId: string
    settings: Partial<Record<RetainedKind, RetentionSetting>>
    actor: string
    approval?: Approval | undefined
  },
): Promise<TenantView> {
  const { tenantId, settings, actor, approval } = change
  return deps.postgres.transaction(async (tx) => {
    const before = await requireTenant(tx, tenantId)
    await setRetention(tx, tenantId, settings)
    const after = await requireTenant(tx, tenantId)
    if (shortensRetention(toRetentionDays(before), toRetentionDays(after))) {
      await claimChange(tx, { tenantId, kind: 'retention', approval, actor })
    }
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
