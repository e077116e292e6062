/**
 * One change of a tenant's credentials or status at a time, on any number of consoles: a session
 * lock in Postgres, held for as long as the change takes. Whoever loses the connection loses the
 * lock, and with it the connection that every later step of the change needs.
 */
import { Problem } from '#shared/core/problem.ts'
import { isSqlState, type Postgres, type Session, sqlStates } from './postgres.ts'

const keySql = "hashtextextended('tenant:' || $1, 0)"

/**
 * Waits for the tenant's lock, for as long as the pool's `lockTimeoutMs`, and runs `work` under it.
 * @throws Problem conflict when somebody else kept it for too long
 */
export async function withTenantLock<T>(
  postgres: Postgres,
  tenantId: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return postgres.withSession(async (session) => {
    try {
      await session.query(`select pg_advisory_lock(${keySql})`, [tenantId])
    } catch (error) {
      if (!isSqlState(error, sqlStates.lockNotAvailable)) throw error
      throw new Problem('conflict', `Another change of tenant ${tenantId} is under way.`)
    }
    return whileLocked(session, tenantId, work)
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
      [tenantId],
    )
    return rows[0]!.locked ? whileLocked(session, tenantId, work) : null
  })
}

async function whileLocked<T>(
  session: Session,
  tenantId: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  try {
    return await work(session)
  } finally {
    // When this fails the connection is broken and thrown away, and the lock is gone with it.
    await session.query(`select pg_advisory_unlock(${keySql})`, [tenantId]).catch(() => undefined)
  }
}
