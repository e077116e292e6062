/**
 * One change of a tenant's credentials or status at a time, on any number of consoles: a named
 * lock, held for as long as the change takes. A change whose lock is lost cannot go on.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { tenantLockWaitMs } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Session } from '#shared/io/postgres/postgres.ts'

/**
 * What is locked: all changes of the tenant, or erasures alone, which take longer than a rotation
 * should ever have to wait.
 */
type LockScope = 'tenant' | 'erasure'

const toName = (tenantId: string, scope: LockScope): string => `${scope}:${tenantId}`

/** How often a change that waits tries again. */
const retryMs = 50

/**
 * Waits for the tenant's lock and runs `work` under it. Waiting holds no connection: however many
 * changes of one tenant wait, those of others find theirs.
 * @param locks with how long to wait, 10 s when left out
 * @throws Problem conflict when the lock is not free within the limit
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

/** The same without waiting: null when the lock is taken. */
export async function tryTenantLock<T>(
  locks: Locks,
  tenantId: string,
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return tryNamedLock(locks, toName(tenantId, 'tenant'), work)
}
