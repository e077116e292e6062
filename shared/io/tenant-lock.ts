/**
 * One change of a tenant's credentials or status at a time, on any number of consoles: a named lock,
 * held for as long as the change takes. A change whose lock is lost cannot go on.
 */
import { Problem } from '#shared/core/problem.ts'
import { type Locks, tryNamedLock, withNamedLock } from './named-lock-store.ts'
import { isSqlState, type Session, sqlStates } from './postgres.ts'

/**
 * What is locked: all changes of the tenant, or erasures alone, which take longer than a rotation
 * should ever have to wait.
 */
export type LockScope = 'tenant' | 'erasure'

const toName = (tenantId: string, scope: LockScope): string => `${scope}:${tenantId}`

/**
 * Waits for the tenant's lock, for as long as the holders' `lockTimeoutMs`, and runs `work` under it.
 * @throws Problem conflict when somebody else kept it for too long
 */
export async function withTenantLock<T>(
  locks: Locks,
  tenantId: string,
  work: (session: Session) => Promise<T>,
  scope: LockScope = 'tenant',
): Promise<T> {
  let locked = false
  try {
    return await withNamedLock(locks, toName(tenantId, scope), (session) => {
      locked = true
      return work(session)
    })
  } catch (error) {
    if (locked || !isSqlState(error, sqlStates.lockNotAvailable)) throw error
    throw new Problem('conflict', `Another change of tenant ${tenantId} is under way.`)
  }
}

/** The same without waiting: null when somebody else has the lock. */
export async function tryTenantLock<T>(
  locks: Locks,
  tenantId: string,
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return tryNamedLock(locks, toName(tenantId, 'tenant'), work)
}
