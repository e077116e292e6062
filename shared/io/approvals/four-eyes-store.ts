/** What tenants want of four eyes, in Postgres. A tenant without a row does not want it. */
import type { FourEyes } from '#shared/core/approvals/four-eyes.ts'
import { bulkAboveDefault } from '#shared/core/base/limits/policies.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export async function findFourEyes(db: Queryable, tenantId: string): Promise<FourEyes> {
  const { rows } = await db.query<{ enabled: boolean; bulk_above: number }>(
    'select enabled, bulk_above from four_eyes where tenant_id = $1',
    [tenantId],
  )
  const row = rows[0]
  return { enabled: row?.enabled ?? false, bulkAbove: row?.bulk_above ?? bulkAboveDefault }
}

/** Writes the setting. Call it after `claimChange`, in its transaction. */
export async function saveFourEyes(
  tx: Queryable,
  tenantId: string,
  { enabled, bulkAbove }: FourEyes,
): Promise<void> {
  await tx.query(
    `insert into four_eyes (tenant_id, enabled, bulk_above) values ($1, $2, $3)
     on conflict (tenant_id) do update set enabled = $2, bulk_above = $3`,
    [tenantId, enabled, bulkAbove],
  )
}
