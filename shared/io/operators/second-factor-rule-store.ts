/** In Postgres: whose operators need a second factor. */
import type { SecondFactorRule } from '#shared/core/operators/second-factor-rule.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** When the first rule that covers the operator `o` was made: those of tenants they may see. */
export const requiredSinceSql = `(select min(r.since) from second_factor_rules r
  where r.tenant_id is null or o.tenants is null or r.tenant_id = any(o.tenants))`

/** When the first rule that covers an operator was made; null without one. */
export async function findRequiredSince(db: Queryable, operatorId: string): Promise<number | null> {
  const { rows } = await db.query<{ since: Date | null }>(
    `select ${requiredSinceSql} as since from operators o where o.operator_id = $1`,
    [operatorId],
  )
  return rows[0]?.since?.getTime() ?? null
}

/** The rule of a tenant, or with null that of all operators; null while there is none. */
export async function findSecondFactorRule(
  db: Queryable,
  tenantId: string | null,
): Promise<SecondFactorRule | null> {
  const { rows } = await db.query<{ since: Date }>(
    'select since from second_factor_rules where tenant_id is not distinct from $1',
    [tenantId],
  )
  return rows[0] === undefined ? null : { tenantId, sinceMs: rows[0].since.getTime() }
}

/** @returns false when there is such a rule already */
export async function insertSecondFactorRule(
  tx: Queryable,
  { tenantId, sinceMs }: SecondFactorRule,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into second_factor_rules (tenant_id, since) values ($1, $2) on conflict do nothing`,
    [tenantId, new Date(sinceMs)],
  )
  return rowCount === 1
}

/** @returns false when there was none */
export async function removeSecondFactorRule(
  tx: Queryable,
  tenantId: string | null,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    'delete from second_factor_rules where tenant_id is not distinct from $1',
    [tenantId],
  )
  return rowCount === 1
}
