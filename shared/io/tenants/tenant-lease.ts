/**
 * The lease of a tenant's changes: one change of its credentials or status at a time, on any number
 * of consoles.
 */
import { tenantLockWaitMs } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'

/**
 * What it covers: all changes of the tenant, or only erasures, which take too long for a rotation.
 */
type LeaseScope = 'tenant' | 'erasure'

const toName = (tenantId: string, scope: LeaseScope): string => `${scope}:${tenantId}`

/**
 * Waits for the tenant's lease and runs `work` under it.
 * @param leases with the time limit of the wait, 10 s by default
 * @throws Problem conflict when the lease is not free in time
 */
export async function withTenantLease<T>(
  leases: Leases & { waitMs?: number },
  tenantId: string,
  work: (lease: Lease) => Promise<T>,
  scope: LeaseScope = 'tenant',
): Promise<T> {
  const done = await withLease(
    leases,
    toName(tenantId, scope),
    async (lease) => ({ result: await work(lease) }),
    leases.waitMs ?? tenantLockWaitMs,
  )
  if (done !== null) return done.result
  throw new Problem('conflict', `Another change of tenant ${tenantId} is under way.`)
}

/** Runs `work` under the tenant's lease. @returns null when another caller has it */
export async function tryTenantLease<T>(
  leases: Leases,
  tenantId: string,
  work: (lease: Lease) => Promise<T>,
  scope: LeaseScope = 'tenant',
): Promise<T | null> {
  return withLease(leases, toName(tenantId, scope), work)
}
