/**
 * A lock of a name, held in Postgres by a connection: of any number of processes one does a thing
 * at a time. It is gone with its connection, so nobody has to clean up after a crash.
 */
import type { Postgres, Queryable, Session } from './postgres.ts'

const keySql = 'hashtextextended($1, 0)'

/**
 * Runs `work` while nobody else holds the lock of this name.
 * @returns null when somebody does
 */
export async function tryNamedLock<T>(
  postgres: Postgres,
  name: string,
  work: (session: Session) => Promise<T>,
): Promise<T | null> {
  return postgres.withSession(async (session) => {
    const { rows } = await session.query<{ locked: boolean }>(
      `select pg_try_advisory_lock(${keySql}) as locked`,
      [name],
    )
    return rows[0]!.locked ? whileLocked(session, name, work) : null
  })
}

/**
 * Waits for the lock of a name, for as long as the pool's `lockTimeoutMs`.
 * @throws lockNotAvailable when somebody kept it for longer
 */
export async function takeNamedLock(session: Queryable, name: string): Promise<void> {
  await session.query(`select pg_advisory_lock(${keySql})`, [name])
}

/** Runs `work` on a connection that holds the lock of this name, and gives the lock back. */
export async function whileLocked<T>(
  session: Session,
  name: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  try {
    return await work(session)
  } finally {
    // When this fails the connection is broken and thrown away, and the lock is gone with it.
    await session.query(`select pg_advisory_unlock(${keySql})`, [name]).catch(() => undefined)
  }
}
