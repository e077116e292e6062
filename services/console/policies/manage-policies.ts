/**
 * Sets a tenant's policy. A change is one transaction under the tenant's lock (document, version,
 * epoch, audit row). It returns once every live edge scores with the new policy or rejects
 * requests.
 * Older versions are never removed and may be set again.
 */
import { isDeepStrictEqual } from 'node:util'
import { policyBytesMax } from '#shared/core/base/limits/tenants.ts'
import { Problem, type ProblemDetail } from '#shared/core/http/problem.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import type { Approval } from '#shared/io/approvals/claim-change.ts'
import { createPolicyStore, type PolicyVersion } from '#shared/io/policies/policy-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { withTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { requireRecovered } from '../tenants/directory.ts'
import { type ManageDeps, requireTenant, updateEdges } from '../tenants/manage-tenants.ts'

export type PolicyDeps = Pick<ManageDeps, 'leases' | 'directory'> & {
  /** The monotonic clock. */
  nowMs: () => number
}

type SetPolicy = {
  tenantId: string
  /** A policy document as received. */
  document: unknown
  /** Rejects the change if another version is in force. */
  ifVersion?: number | undefined
  actor: string
  /** Why; kept with the version. */
  reason?: string | null
  approval?: Approval | undefined
  /** What else is done in the transaction of the new version. */
  onRecorded?: (tx: Queryable) => Promise<void>
}

export type PolicyResult = {
  tenant_id: string
  version: number
  policy_hash: string
  name: string
  /** The version in force before; the same if nothing changed. */
  previous_version: number
  /** From the request until every edge scores with the policy. */
  duration_ms: number
  /** Edges that confirmed the change, and edges that reject requests until they have it. */
  confirmed_edges: string[]
  lease_expired_edges: string[]
}

/**
 * Puts a policy in force. Setting the policy in force again adds no version, whatever `ifVersion`
 * is, and waits for the edges again.
 * @throws Problem invalid_policy with every fault by its path, tenant_not_found, policy_conflict,
 *   approval_required; unavailable when the change is recorded but an edge may not have it yet
 */
export async function setTenantPolicy(deps: PolicyDeps, change: SetPolicy): Promise<PolicyResult> {
  const startedMs = deps.nowMs()
  const { tenantId, ifVersion } = change
  const policy = readPolicy(change.document)
  return withTenantLease(deps.leases, tenantId, async (session) => {
    await requireTenant(session, tenantId)
    await requireRecovered(deps.directory, session, tenantId)
    const store = createPolicyStore(session)
    const before = await store.findInForce(tenantId)
    let after: PolicyVersion | null = before
    const isNew = before === null || !isSamePolicy(JSON.parse(before.text), policy)
    // A proposal was made over another policy: once this one is in force, somebody was first.
    if (isNew || change.approval !== undefined) {
      if (ifVersion !== undefined && before?.version !== ifVersion)
        throw conflict(before, ifVersion)
      after = await session.transaction((tx) => record(tx, change, before))
    }
    const edges = await updateEdges(deps, session, tenantId)
    return {
      tenant_id: tenantId,
      version: after!.version,
      policy_hash: after!.policy_hash,
      name: after!.name,
      previous_version: before?.version ?? after!.version,
      duration_ms: Math.round(deps.nowMs() - startedMs),
      confirmed_edges: edges.confirmed,
      lease_expired_edges: edges.leaseExpired,
    }
  })
}

/**
 * Checks a policy document.
 * @throws Problem invalid_policy with every fault by its path
 */
export function readPolicy(document: unknown): Policy {
  const checked = checkPolicy(document)
  if (!checked.ok) throw invalid(checked.errors)
  const bytes = Buffer.byteLength(JSON.stringify(document))
  if (bytes > policyBytesMax) {
    throw invalid([
      { path: '$', message: `has ${bytes} bytes; at most ${policyBytesMax} are allowed` },
    ])
  }
  const faults: ProblemDetail[] = []
  findUnstorable(document, '$', faults)
  if (faults.length > 0) throw invalid(faults)
  return checked.policy
}

function invalid(errors: ProblemDetail[]): Problem {
  return new Problem('invalid_policy', 'The policy is not valid. Nothing was changed.', { errors })
}

/** Finds text that JSON allows and Postgres cannot store: NUL and lone surrogates. */
function findUnstorable(value: unknown, path: string, faults: ProblemDetail[]): void {
  const check = (text: string, at: string) => {
    if (!text.includes('\0') && text.isWellFormed()) return
    faults.push({ path: at, message: 'contains a character that cannot be stored' })
  }
  if (typeof value === 'string') check(value, path)
  else if (Array.isArray(value)) {
    value.forEach((item, index) => {
      findUnstorable(item, `${path}[${index}]`, faults)
    })
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      check(key, path)
      findUnstorable(item, `${path}.${key}`, faults)
    }
  }
}

/** Compares policies. The order of keys and omitted defaults do not matter. */
export function isSamePolicy(stored: unknown, policy: Policy): boolean {
  const parsed = policySchema.safeParse(stored)
  return parsed.success && isDeepStrictEqual(parsed.data, policy)
}

function conflict(inForce: PolicyVersion | null, ifVersion: number): Problem {
  return new Problem(
    'policy_conflict',
    `Version ${inForce?.version ?? 0} is in force, not ${ifVersion}: the policy was changed ` +
      'meanwhile. Nothing was changed.',
  )
}

/** Stores the document unchanged, so an older document keeps its hash. */
async function record(
  tx: Queryable,
  { tenantId, document, actor, reason = null, approval, onRecorded }: SetPolicy,
  before: PolicyVersion | null,
): Promise<PolicyVersion> {
  const store = createPolicyStore(tx)
  const policy = { hash: toPolicyHash(document as Policy), text: JSON.stringify(document) }
  const version = await store.insertVersion({
    tenantId,
    policy,
    createdBy: actor,
    reason,
    approval,
  })
  await onRecorded?.(tx)
  const after = await store.findVersion({ tenantId, version })
  await insertAudit(tx, {
    actor,
    tenantId,
    action: 'policy.set',
    before: toShown(before),
    after: toShown(after),
  })
  return after!
}

const toShown = (policy: PolicyVersion | null) =>
  policy === null
    ? null
    : {
        version: policy.version,
        policy_hash: policy.policy_hash,
        name: policy.name,
        reason: policy.reason,
        ...(policy.approved_by === null ? {} : { approved_by: policy.approved_by }),
      }
