// What becomes of a process that hung: another one had its lease meanwhile.
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Takes a lease away from its holder, who finds that out by its next write. */
export async function takeLeaseAway(db: Queryable, name: string): Promise<void> {
  const { rowCount } = await db.query('delete from leases where name = $1', [name])
  if (rowCount !== 1) throw new Error(`no process has the lease ${name}`)
}
