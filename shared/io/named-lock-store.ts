/**
 * A lock of a name, held in Postgres by a connection: of any number of processes one does a thing
 * at a time. It is gone with its connection, so nobody has to clean up after a crash.
 */
import type { Postgres, Session } from './postgres.ts'

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
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
      [name],
    )
    if (!rows[0]!.locked) return null
    try {
      return await work(session)
    } finally {
      // When this fails the connection is broken and thrown away, and the lock is gone with it.
      await session
        .query('select pg_advisory_unlock(hashtextextended($1, 0))', [name])
        .catch(() => undefined)
    }
  })
}
