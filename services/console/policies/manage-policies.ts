/**
 * Setting a tenant's policy. A change is one transaction under the tenant's lock (document,
 * version, epoch, audit row), then goes to the edges, document first, and returns only once every
 * edge scores by it or refuses to score at all. Older versions stay for good, and may be set again.
 */
import { isDeepStrictEqual } from 'node:util'
import { policyBytesMax } from '#shared/core/base/limits/tenants.ts'
import { Problem, type ProblemDetail } from '#shared/core/http/problem.ts'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { createPolicyStore, type PolicyVersion } from '#shared/io/policies/policy-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { withTenantLock } from '#shared/io/tenants/tenant-lock.ts'
import { type ManageDeps, requireTenant, tellEdges } from '../tenants/manage-tenants.ts'

export type PolicyDeps = Pick<ManageDeps, 'locks' | 'directory'> & {
  /** The monotonic clock. */
  nowMs: () => number
}

export type SetPolicy = {
  tenantId: string
  /** A policy document as it came. */
  document: unknown
  /** Refuses the change when another version is in force. */
  ifVersion?: number | undefined
  actor: string
}

export type PolicyAnswer = {
  tenant_id: string
  version: number
  policy_hash: string
  name: string
  /** The version that was in force before: the same when the policy was in force already. */
  previous_version: number
  /** From the request to the moment every edge scores by it. */
  duration_ms: number
  /** Edges that confirmed it, and those that refuse until they have it. */
  confirmed_edges: string[]
  lease_expired_edges: string[]
}

/**
 * Puts a policy in force. Setting the one that is in force already, whatever `ifVersion` says, adds
 * no version and waits for the edges again.
 * @throws Problem invalid_policy with every fault by its path, tenant_not_found, policy_conflict;
 *   unavailable when it is recorded but an edge may not know yet
 */
export async function setTenantPolicy(deps: PolicyDeps, wanted: SetPolicy): Promise<PolicyAnswer> {
  const startedMs = deps.nowMs()
  const { tenantId, ifVersion } = wanted
  const policy = readPolicy(wanted.document)
  return withTenantLock(deps.locks, tenantId, async (session) => {
    await requireTenant(session, tenantId)
    const store = createPolicyStore(session)
    const before = await store.findInForce(tenantId)
    let after: PolicyVersion | null = before
    if (before === null || !isSamePolicy(JSON.parse(before.text), policy)) {
      if (ifVersion !== undefined && before?.version !== ifVersion)
        throw conflict(before, ifVersion)
      after = await session.transaction((tx) => record(tx, wanted, before))
    }
    const edges = await tellEdges(deps, session, tenantId)
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
 * What an operator sent, checked.
 * @throws Problem invalid_policy with every fault by its path
 */
export function readPolicy(document: unknown): Policy {
  const checked = checkPolicy(document)
  if (!checked.ok) throw invalid(checked.errors)
  const bytes = Buffer.byteLength(JSON.stringify(document))
  if (bytes > policyBytesMax) {
    throw invalid([{ path: '$', message: `has ${bytes} bytes, at most ${policyBytesMax} go` }])
  }
  const faults: ProblemDetail[] = []
  findUnstorable(document, '$', faults)
  if (faults.length > 0) throw invalid(faults)
  return checked.policy
}

function invalid(errors: ProblemDetail[]): Problem {
  return new Problem('invalid_policy', 'The policy is not valid. Nothing was changed.', { errors })
}

/** What JSON can spell and Postgres cannot hold: NUL, and half of a surrogate pair. */
function findUnstorable(value: unknown, path: string, faults: ProblemDetail[]): void {
  const judge = (text: string, at: string) => {
    if (!text.includes('\0') && text.isWellFormed()) return
    faults.push({ path: at, message: 'contains a character that cannot be stored' })
  }
  if (typeof value === 'string') judge(value, path)
  else if (Array.isArray(value)) {
    value.forEach((item, index) => {
      findUnstorable(item, `${path}[${index}]`, faults)
    })
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      judge(key, path)
      findUnstorable(item, `${path}.${key}`, faults)
    }
  }
}

/** Whatever the order of keys, and whichever fields an older document leaves to their defaults. */
export function isSamePolicy(stored: unknown, policy: Policy): boolean {
  const parsed = policySchema.safeParse(stored)
  return parsed.success && isDeepStrictEqual(parsed.data, policy)
}

function conflict(inForce: PolicyVersion | null, ifVersion: number): Problem {
  return new Problem(
    'policy_conflict',
    `Version ${inForce?.version ?? 0} is in force, not ${ifVersion}: somebody else changed the ` +
      'policy. Nothing was changed.',
  )
}

/** Stores the document as it came, so that it comes back so and an old one keeps its hash. */
async function record(
  tx: Queryable,
  { tenantId, document, actor }: SetPolicy,
  before: PolicyVersion | null,
): Promise<PolicyVersion> {
  const store = createPolicyStore(tx)
  const policy = { hash: toPolicyHash(document as Policy), text: JSON.stringify(document) }
  const version = await store.insertVersion({ tenantId, policy, createdBy: actor })
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
    : { version: policy.version, policy_hash: policy.policy_hash, name: policy.name }
