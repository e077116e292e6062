/** The keys that addresses of clients are hashed under, in Postgres: one per tenant, for good. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** @returns false when the tenant has a key, or is gone */
export async function insertAddressKey(
  tx: Queryable,
  tenantId: string,
  sealed: string,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into address_keys (tenant_id, sealed)
     select tenant_id, $2 from tenants where tenant_id = $1
     on conflict do nothing`,
    [tenantId, sealed],
  )
  return rowCount === 1
}

/** `insertAddressKey` for a tenant that the edges know already. */
export async function addAddressKey(
  tx: Queryable,
  tenantId: string,
  sealed: string,
): Promise<boolean> {
  const isNew = await insertAddressKey(tx, tenantId, sealed)
  if (isNew) await tx.query('update tenants set epoch = epoch + 1 where tenant_id = $1', [tenantId])
  return isNew
}

/** Tenants without a key: they are older than these keys. */
export async function listTenantsWithoutAddressKey(
  db: Queryable,
  limit: number,
): Promise<string[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select tenant_id from tenants t
     where not exists (select from address_keys k where k.tenant_id = t.tenant_id)
     order by tenant_id limit $1`,
    [limit],
  )
  return rows.map((row) => row.tenant_id)
}

/** Takes the key of a directory entry, which knows more than Postgres. */
export async function recoverAddressKey(
  tx: Queryable,
  tenantId: string,
  sealed: string,
): Promise<void> {
  await tx.query(
    `insert into address_keys (tenant_id, sealed) values ($1, $2)
     on conflict (tenant_id) do update set sealed = excluded.sealed`,
    [tenantId, sealed],
  )
}
