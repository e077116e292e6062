/** The codes of labels that tenants declared, in Postgres. */
import type { DeclaredCodes } from '#shared/core/outcomes/label-codes.ts'
import type { Outcome } from '#shared/core/outcomes/labels.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** A tenant's declared codes. */
export async function readLabelCodes(db: Queryable, tenantId: string): Promise<DeclaredCodes> {
  const { rows } = await db.query<{ code: string; means: Outcome }>(
    'select code, means from label_codes where tenant_id = $1',
    [tenantId],
  )
  return new Map(rows.map(({ code, means }) => [code, means]))
}

/**
 * Declares a code. Call it in a transaction.
 * @returns what it means now: another meaning than asked for when labels of the code are there, and
 *   null when the tenant has as many codes as it may
 */
export async function insertLabelCode(
  tx: Queryable,
  { tenantId, code, means, most }: { tenantId: string; code: string; means: Outcome; most: number },
): Promise<Outcome | null> {
  const { rows } = await tx.query<{ means: Outcome }>(
    `insert into label_codes as present (tenant_id, code, means)
     select $1, $2, $3
     where (select count(*) from label_codes where tenant_id = $1 and code <> $2) < $4
     on conflict (tenant_id, code) do update set means = case
       when exists (select from labels where tenant_id = $1 and label = $2) then present.means
       else excluded.means end
     returning means`,
    [tenantId, code, means, most],
  )
  return rows[0]?.means ?? null
}

/** Removes a code; its labels stay and mean what they meant. @returns whether it was there */
export async function deleteLabelCode(
  tx: Queryable,
  tenantId: string,
  code: string,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    'delete from label_codes where tenant_id = $1 and code = $2',
    [tenantId, code],
  )
  return rowCount === 1
}
