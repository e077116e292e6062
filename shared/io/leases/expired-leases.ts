/** Finds the leases of processes that have ended or hang. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/**
 * Removes the leases that have expired, each for one caller. A holder that goes on has lost its
 * own.
 * @returns their names
 */
export async function removeExpiredLeases(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `delete from leases where name in (
       select name from leases where expires_at <= clock_timestamp() for update skip locked)
     returning name`,
  )
  return rows.map(({ name }) => name)
}
