/**
 * Sets a shadow policy: it decides beside the active policy, but raises no alerts. A change is one
 * transaction under the tenant's lock: document, version, audit row. No edge is told: scorers find
 * it by themselves before the first event that it decides.
 */
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import {
  findShadowPolicy,
  insertShadowVersion,
  type ShadowPolicy,
} from '#shared/io/policies/shadow-policy-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { type ManageDeps, requireTenant } from '../tenants/manage-tenants.ts'
import { isSamePolicy, readPolicy } from './manage-policies.ts'

export type SetShadow = {
  tenantId: string
  /** A policy document as it came; null switches the shadow off. */
  document: unknown
  actor: string
}

export type ShadowAnswer = {
  tenant_id: string
  version: number
  /** Null when it is off, as is the name. */
  policy_hash: string | null
  name: string | null
  /** It decides events that the edges receive from then on. */
  effective_at: string
  created_at: string
  created_by: string
  /** The version before; the same when nothing had to change, 0 when there was none. */
  previous_version: number
}

/**
 * Sets the shadow, or switches it off. What is so already adds no version.
 * @returns null when there was none to switch off
 * @throws Problem invalid_policy with every fault by its path, tenant_not_found
 */
export async function setShadowPolicy(
  deps: Pick<ManageDeps, 'locks'>,
  wanted: SetShadow,
): Promise<ShadowAnswer | null> {
  const { tenantId, document } = wanted
  const policy = document === null ? null : readPolicy(document)
  return withTenantLock(deps.locks, tenantId, async (session) => {
    await requireTenant(session, tenantId)
    const before = await findShadowPolicy(session, { tenantId })
    if (isSame(before, policy)) return before === null ? null : toAnswer(tenantId, before, before)
    const after = await session.transaction((tx) => record(tx, wanted, before))
    return toAnswer(tenantId, after, before)
  })
}

function isSame(before: ShadowPolicy | null, policy: Policy | null): boolean {
  const text = before?.text ?? null
  if (policy === null || text === null) return policy === null && text === null
  return isSamePolicy(JSON.parse(text), policy)
}

/** Stores the document as it came, so that it comes back so. */
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

function toAnswer(
  tenantId: string,
  { text: _, ...shadow }: ShadowPolicy,
  before: ShadowPolicy | null,
): ShadowAnswer {
  return { tenant_id: tenantId, ...shadow, previous_version: before?.version ?? 0 }
}
