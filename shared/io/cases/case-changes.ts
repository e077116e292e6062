/** What streams and metrics read of cases. */
import { caseChangesAnnouncedMax } from '#shared/core/base/limits/alerts.ts'
import type { CaseState } from '#shared/core/cases/case.ts'
import type { AnnouncedCases } from '#shared/core/cases/case-schemas.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/**
 * Tells streams that cases changed. Call it under the lock of the tenant's alerts.
 * @param caseIds null when they are too many to name
 */
export async function tellCases(
  tx: Queryable,
  tenantId: string,
  caseIds: readonly string[] | null,
): Promise<void> {
  await tx.query(
    `with told as (
       update alert_sequences set case_seq = case_seq + 1 where tenant_id = $1
       returning case_seq)
     insert into case_changes (tenant_id, seq, case_ids)
     select $1, case_seq, $2::text[] from told`,
    [tenantId, caseIds],
  )
}

/**
 * The cases of a tenant that changed after one `case_seq`, up to another. A change that is no
 * longer kept is one too many to name.
 */
export async function findChangedCases(
  db: Queryable,
  tenantId: string,
  { after, upTo }: { after: number; upTo: number },
): Promise<AnnouncedCases> {
  const { rows: changes } = await db.query<{ case_ids: string[] | null }>(
    `select case_ids from case_changes where tenant_id = $1 and seq > $2 and seq <= $3
     order by seq limit ${caseChangesAnnouncedMax + 1}`,
    [tenantId, after, upTo],
  )
  const ids = new Set(changes.flatMap(({ case_ids: caseIds }) => caseIds ?? []))
  const named = [...ids].slice(0, caseChangesAnnouncedMax)
  const { rows: cases } = await db.query<{ case_id: string; state: CaseState }>(
    'select case_id, state from cases where case_id = any($1) order by case_id',
    [named],
  )
  const isWhole = changes.length === upTo - after && named.length === ids.size
  return { cases, more: !isWhole || changes.some(({ case_ids: caseIds }) => caseIds === null) }
}

/** Removes changes that every stream has told. */
export async function removeToldChanges(db: Queryable): Promise<void> {
  await db.query(`delete from case_changes where at < now() - interval '1 minute'`)
}

/** How many cases of all tenants are open, and how many of these are overdue. */
export async function countOpenCases(db: Queryable): Promise<{ open: number; breached: number }> {
  const { rows } = await db.query<{ open: number; breached: number }>(
    `select count(*) as open, count(*) filter (where due_at <= now()) as breached
     from cases where closed_at is null`,
  )
  return rows[0]!
}
