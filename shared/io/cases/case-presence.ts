/** Who has a case open. Any number of consoles serve pages, so it is kept in Postgres. */
import { caseLeaseMs, casePresenceMs } from '#shared/core/base/limits/alerts.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'

export type Here = { operator: string; since: string }

/** SQL: whether a row of `case_presence` still counts. */
export const isHere = `seen_at > clock_timestamp() - ${casePresenceMs} * interval '1 millisecond'`

/** Who is in some cases, by case, the first to come first. */
export async function readPresence(
  db: Queryable,
  caseIds: readonly string[],
): Promise<Map<string, Here[]>> {
  const here = new Map<string, Here[]>()
  if (caseIds.length === 0) return here
  const { rows } = await db.query<{ case_id: string; operator: string; since: Date }>(
    `select case_id, operator, since from case_presence
     where case_id = any($1) and ${isHere} order by since, operator`,
    [caseIds],
  )
  for (const { case_id: caseId, operator, since } of rows) {
    const one = { operator, since: since.toISOString() }
    here.set(caseId, [...(here.get(caseId) ?? []), one])
  }
  return here
}

/**
 * Tells that an operator has a case open, and renews the lease that `next` gave: not at every call,
 * since a lease is long.
 * @returns who is in the case now
 */
export function enterCase(
  db: Session,
  { caseId, operator }: { caseId: string; operator: string },
): Promise<Here[]> {
  return db.transaction(async (tx) => {
    await tx.query(
      `with gone as (
         delete from case_presence where operator = $2 and case_id <> $1 and not ${isHere}
       )
       insert into case_presence as p (case_id, operator) values ($1, $2)
       on conflict (case_id, operator) do update set seen_at = excluded.seen_at,
         since = case when p.${isHere} then p.since else excluded.since end`,
      [caseId, operator],
    )
    await tx.query(
      `update cases set leased_until = clock_timestamp() + $3 * interval '1 millisecond'
       where case_id = $1 and leased_by = $2 and leased_until > clock_timestamp()
         and leased_until < clock_timestamp() + 0.9 * $3 * interval '1 millisecond'`,
      [caseId, operator, caseLeaseMs],
    )
    return (await readPresence(tx, [caseId])).get(caseId) ?? []
  })
}

/** Ends the presence of an operator in a case, and the operator's lease. */
export async function leaveCase(
  db: Queryable,
  { caseId, operator }: { caseId: string; operator: string },
): Promise<void> {
  await db.query('delete from case_presence where case_id = $1 and operator = $2', [
    caseId,
    operator,
  ])
  await db.query(
    `update cases set leased_by = null, leased_until = null
     where case_id = $1 and leased_by = $2`,
    [caseId, operator],
  )
}
