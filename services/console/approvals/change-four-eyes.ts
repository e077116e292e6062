/** Switches four eyes of a tenant on and off. While it is on, that needs an approval itself. */
import type { FourEyes } from '#shared/core/approvals/four-eyes.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { findFourEyes, saveFourEyes } from '#shared/io/approvals/four-eyes-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/** The setting as routes answer it. */
export const toFourEyesView = (tenantId: string, { enabled, bulkAbove }: FourEyes) => ({
  tenant_id: tenantId,
  enabled,
  bulk_above: bulkAbove,
})

/** @throws Problem tenant_not_found, approval_required */
export function setFourEyes(
  postgres: Postgres,
  wanted: { tenantId: string; setting: FourEyes; actor: string; approval?: Approval | undefined },
): Promise<ReturnType<typeof toFourEyesView>> {
  const { tenantId, setting, actor, approval } = wanted
  return postgres.transaction(async (tx) => {
    await requireTenant(tx, tenantId)
    const before = await findFourEyes(tx, tenantId)
    await claimChange(tx, { tenantId, kind: 'four_eyes', approval, actor })
    await saveFourEyes(tx, tenantId, setting)
    await insertAudit(tx, { actor, tenantId, action: 'four_eyes.set', before, after: setting })
    return toFourEyesView(tenantId, setting)
  })
}
