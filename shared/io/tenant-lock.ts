/**
 * One change of a tenant's credentials or status at a time, on any number of consoles: a session
 * lock in Postgres, held for as long as the change takes. Whoever loses the connection loses the
 * lock, and with it the connection that every later step of the change needs.
 */
import { Problem } from '#shared/core/problem.ts'
import { takeNamedLock, tryNamedLock, whileLocked } from './named-lock-store.ts'
import { isSqlState, type Postgres, type Session, sqlStates } from './postgres.ts'

/**
 * What is locked: all changes of the tenant, or erasures alone, which take longer than a rotation
 * should ever have to wait.
 */
export type LockScope = 'tenant' | 'erasure'

const toName = (tenantId: string, scope: LockScope): string => `${scope}:${tenantId}`

/**
 * Waits for the tenant's lock, for as long as the pool's `lockTimeoutMs`, and runs `work` under it.
 * @throws Problem conflict when somebody else kept it for too long
 */
export async function withTenantLock<T>(
  postgres: Postgres,
  tenantId: string,
  work: (session: Session) => Promise<T>,
  scope: LockScope = 'tenant',
): Promise<T> {
  const name = toName(tenantId, scope)
  return postgres.withSession(async (session) => {
    try {
      await takeNamedLock(session, name)
    } catch (error) {
      if (!isSqlState(error, sqlStates.lockNotAvailable)) throw error
      throw new Problem('conflict', `Another change of tenant ${tenantId} is under way.`)
    }
    return whileLocked(session, name, work)
  })
}

/** The same without waiting: null when somebody else has the lock. */
export async function tryTenantLock<T>(
  postgres: Postgres,
  tenantId: string,
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return tryNamedLock(postgres, toName(tenantId, 'tenant'), work)
}
