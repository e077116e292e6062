/**
 * One change of a tenant's credentials or status at a time, on any number of consoles: a session
 * lock in Postgres, held for as long as the change takes. Whoever loses the connection loses the
 * lock, and with it the connection that every later step of the change needs.
 */
import { Problem } from '#shared/core/problem.ts'
import { isSqlState, type Postgres, type Session, sqlStates } from './postgres.ts'

const keySql = "hashtextextended($2 || ':' || $1, 0)"

/**
 * What is locked: all changes of the tenant, or erasures alone, which take longer than a rotation
 * should ever have to wait.
 */
export type LockScope = 'tenant' | 'erasure'

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
  return postgres.withSession(async (session) => {
    try {
      await session.query(`select pg_advisory_lock(${keySql})`, [tenantId, scope])
    } catch (error) {
      if (!isSqlState(error, sqlStates.lockNotAvailable)) throw error
      throw new Problem('conflict', `Another change of tenant ${tenantId} is under way.`)
    }
    return whileLocked(session, [tenantId, scope], work)
  })
}

/** The same without waiting: null when somebody else has the lock. */
export async function tryTenantLock<T>(
  postgres: Postgres,
  tenantId: string,
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return postgres.withSession(async (session) => {
    const { rows } = await session.query<{ locked: boolean }>(
      `select pg_try_advisory_lock(${keySql}) as locked`,
      [tenantId, 'tenant'],
    )
    return rows[0]!.locked ? whileLocked(session, [tenantId, 'tenant'], work) : null
  })
}

async function whileLocked<T>(
  session: Session,
  key: [tenantId: string, scope: LockScope],
  work: (session: Session) => Promise<T>,
): Promise<T> {
  try {
    return await work(session)
  } finally {
    // When this fails the connection is broken and thrown away, and the lock is gone with it.
    await session.query(`select pg_advisory_unlock(${keySql})`, key).catch(() => undefined)
  }
}
