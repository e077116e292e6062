/** The analysts of each tenant, in Postgres: who there is, and whose password is right. */
import { timingSafeEqual } from 'node:crypto'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type AnalystView = { name: string; created_at: string; created_by: string }

/**
 * Records an analyst.
 * @param analyst.passwordHash SHA-256 of the password; null when ClickHouse keeps it
 * @returns false when the tenant has one of that name
 */
export async function insertAnalyst(
  tx: Queryable,
  analyst: { tenantId: string; name: string; passwordHash: Buffer | null; createdBy: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into analysts (tenant_id, name, password_hash, created_by)
     values ($1, $2, $3, $4) on conflict do nothing`,
    [analyst.tenantId, analyst.name, analyst.passwordHash, analyst.createdBy],
  )
  return rowCount === 1
}

/** Records an analyst, or gives one that exists a new password. */
export async function saveAnalyst(
  tx: Queryable,
  analyst: { tenantId: string; name: string; passwordHash: Buffer | null; createdBy: string },
): Promise<void> {
  await tx.query(
    `insert into analysts (tenant_id, name, password_hash, created_by)
     values ($1, $2, $3, $4)
     on conflict (tenant_id, name) do update set password_hash = excluded.password_hash`,
    [analyst.tenantId, analyst.name, analyst.passwordHash, analyst.createdBy],
  )
}

/**
 * Gives an analyst a new password.
 * @param analyst.passwordHash as of `insertAnalyst`
 * @returns false when there is none of that name
 */
export async function changeAnalystPassword(
  tx: Queryable,
  analyst: { tenantId: string; name: string; passwordHash: Buffer | null },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    'update analysts set password_hash = $3 where tenant_id = $1 and name = $2',
    [analyst.tenantId, analyst.name, analyst.passwordHash],
  )
  return rowCount === 1
}

/** @returns false when there was none of that name */
export async function removeAnalyst(
  tx: Queryable,
  tenantId: string,
  name: string,
): Promise<boolean> {
  const { rowCount } = await tx.query('delete from analysts where tenant_id = $1 and name = $2', [
    tenantId,
    name,
  ])
  return rowCount === 1
}

/** A tenant's analysts by name. */
export async function listAnalysts(db: Queryable, tenantId: string): Promise<AnalystView[]> {
  const { rows } = await db.query<Omit<AnalystView, 'created_at'> & { created_at: Date }>(
    `select name, created_at, created_by from analysts where tenant_id = $1 order by name`,
    [tenantId],
  )
  return rows.map((row) => ({ ...row, created_at: row.created_at.toISOString() }))
}

/** Whether the password is this analyst's and the tenant is active. */
export async function isAnalyst(
  db: Queryable,
  analyst: { tenantId: string; name: string; passwordHash: Buffer },
): Promise<boolean> {
  const { rows } = await db.query<{ password_hash: Buffer }>({
    name: 'find-analyst',
    text: `select password_hash from analysts join tenants using (tenant_id)
           where tenant_id = $1 and analysts.name = $2 and status = 'active'
             and password_hash is not null`,
    values: [analyst.tenantId, analyst.name],
  })
  const known = rows[0]?.password_hash ?? Buffer.alloc(32)
  return timingSafeEqual(known, analyst.passwordHash) && rows.length === 1
}
