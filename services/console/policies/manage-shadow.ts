/**
 * Sets a shadow policy: it decides beside the active policy, but raises no alerts. A change is one
 * transaction under the tenant's lock: document, version, audit row. Edges do not need it; scorers
 * read it before the first event that it decides.
 */
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import {
  findShadowPolicy,
  insertShadowVersion,
  type ShadowPolicy,
} from '#shared/io/policies/shadow-policy-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { type ManageDeps, requireTenant } from '../tenants/manage-tenants.ts'
import { isSamePolicy, readPolicy } from './manage-policies.ts'

type SetShadow = {
  tenantId: string
  /** A policy document as received; null switches the shadow off. */
  document: unknown
  actor: string
}

export type ShadowResult = {
  tenant_id: string
  version: number
  /** Null when the shadow is off, as is the name. */
  policy_hash: string | null
  name: string | null
  /** It decides events that edges receive from this instant on. */
  effective_at: string
  created_at: string
  created_by: string
  /** The previous version; the same if nothing changed, 0 without one. */
  previous_version: number
}

/**
 * Sets the shadow policy, or switches it off. Setting the same again adds no version.
 * @returns null when there was no shadow to switch off
 * @throws Problem invalid_policy with every fault by its path, tenant_not_found
 */
export async function setShadowPolicy(
  deps: Pick<ManageDeps, 'leases'>,
  change: SetShadow,
): Promise<ShadowResult | null> {
  const { tenantId, document } = change
  const policy = document === null ? null : readPolicy(document)
  return withTenantLease(deps.leases, tenantId, async (session) => {
    await requireTenant(session, tenantId)
    const before = await findShadowPolicy(session, { tenantId })
    if (isSame(before, policy)) return before === null ? null : toResult(tenantId, before, before)
    const after = await session.transaction((tx) => record(tx, change, before))
    return toResult(tenantId, after, before)
  })
}

function isSame(before: ShadowPolicy | null, policy: Policy | null): boolean {
  const text = before?.text ?? null
  if (policy === null || text === null) return policy === null && text === null
  return isSamePolicy(JSON.parse(text), policy)
}

/** Stores the document unchanged. */
async function record(
  tx: Queryable,
  { tenantId, document, actor }: SetShadow,
  before: ShadowPolicy | null,
): Promise<ShadowPolicy> {
  const policy =
    document === null
      ? null
      : { hash: toPolicyHash(document as Policy), text: JSON.stringify(document) }
  const after = await insertShadowVersion(tx, { tenantId, policy, createdBy: actor })
  await insertAudit(tx, {
    actor,
    tenantId,
    action: policy === null ? 'policy.shadow_off' : 'policy.shadow_set',
    before: toShown(before),
    after: toShown(after),
  })
  return after
}

const toShown = (shadow: ShadowPolicy | null) =>
  shadow === null
    ? null
    : {
        version: shadow.version,
        policy_hash: shadow.policy_hash,
        name: shadow.name,
        effective_at: shadow.effective_at,
      }

function toResult(
  tenantId: string,
  { text: _, ...shadow }: ShadowPolicy,
  before: ShadowPolicy | null,
): ShadowResult {
  return { tenant_id: tenantId, ...shadow, previous_version: before?.version ?? 0 }
}
