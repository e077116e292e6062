/** What streams and metrics read of cases. */
import { caseChangesAnnouncedMax } from '#shared/core/base/limits/alerts.ts'
import type { CaseState } from '#shared/core/cases/case.ts'
import type { AnnouncedCases } from '#shared/core/cases/case-schemas.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** The cases of a tenant that changed after `seq`, a `case_seq`. */
export async function findChangedCases(
  db: Queryable,
  tenantId: string,
  seq: number,
): Promise<AnnouncedCases> {
  const { rows } = await db.query<{ case_id: string; state: CaseState }>(
    `select case_id, state from cases where tenant_id = $1 and change_seq > $2
     order by change_seq limit ${caseChangesAnnouncedMax + 1}`,
    [tenantId, seq],
  )
  const cases = rows.slice(0, caseChangesAnnouncedMax)
  return { cases, more: rows.length > cases.length }
}

/** How many cases of all tenants are open, and how many of these are overdue. */
export async function countOpenCases(db: Queryable): Promise<{ open: number; breached: number }> {
  const { rows } = await db.query<{ open: number; breached: number }>(
    `select count(*) as open, count(*) filter (where due_at <= now()) as breached
     from cases where open_count > 0`,
  )
  return rows[0]!
}
