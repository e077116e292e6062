/**
 * Reads from Postgres for reconciliation: its clock, which also dates the copies, and the tenants.
 */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** The clock that dates copies of alerts and deliveries, in ms since 1970. */
export async function readClockMs(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ at_ms: number }>(
    'select ceil(extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms',
  )
  return rows[0]!.at_ms
}

/** Alerts of a tenant that was removed are gone with it. */
export async function listTenantIds(db: Queryable): Promise<Set<string>> {
  const { rows } = await db.query<{ tenant_id: string }>('select tenant_id from tenants')
  return new Set(rows.map((row) => row.tenant_id))
}
