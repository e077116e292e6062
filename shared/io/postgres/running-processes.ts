/** Which processes of the service are connected to Postgres, by the names of their connections. */
import type { Queryable } from './postgres.ts'

/** @returns whether a console has a connection right now */
export async function hasRunningConsole(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    `select exists (select from pg_stat_activity
     where datname = current_database()
       and application_name ~ '^device-intelligence console( |$)') as found`,
  )
  return rows[0]!.found
}
