/**
 * The lock of a tenant's changes: one change of its credentials or status at a time, on any number
 * of consoles. A change whose lock is lost cannot continue.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { tenantLockWaitMs } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Session } from '#shared/io/postgres/postgres.ts'

/**
 * What is locked: all changes of the tenant, or only erasures, which take too long for a rotation.
 */
type LockScope = 'tenant' | 'erasure'

const toName = (tenantId: string, scope: LockScope): string => `${scope}:${tenantId}`

/** Pause between two attempts to lock. */
const retryMs = 50

/**
 * Waits for the tenant's lock and runs `work` under it. Waiting needs no connection, so it never
 * blocks changes of other tenants.
 * @param locks with the time limit of the wait, 10 s by default
 * @throws Problem conflict when the lock is not free in time
 */
export async function withTenantLock<T>(
  locks: Locks & { waitMs?: number },
  tenantId: string,
  work: (session: Session) => Promise<T>,
  scope: LockScope = 'tenant',
): Promise<T> {
  const deadlineMs = performance.now() + (locks.waitMs ?? tenantLockWaitMs)
  for (;;) {
    const done = await tryNamedLock(locks, toName(tenantId, scope), async (session) => ({
      result: await work(session),
    }))
    if (done !== null) return done.result
    if (performance.now() >= deadlineMs) {
      throw new Problem('conflict', `Another change of tenant ${tenantId} is under way.`)
    }
    await pause(retryMs)
  }
}

/** Runs `work` under the tenant's lock. @returns null when another caller has the lock */
export async function tryTenantLock<T>(
  locks: Locks,
  tenantId: string,
  work: (session: Session) => Promise<T>,
  scope: LockScope = 'tenant',
): Promise<T | null> {
  return tryNamedLock(locks, toName(tenantId, scope), work)
}
