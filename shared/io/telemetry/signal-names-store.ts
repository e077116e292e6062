/** When operators freed the names of unknown signals of tenants. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** @returns when they are freed, as ISO-8601; null when there is no such tenant */
export async function freeSignalNames(
  postgres: Queryable,
  tenantId: string,
): Promise<string | null> {
  const { rows } = await postgres.query<{ freed_at: Date }>(
    `update tenants set signal_names_freed_at = clock_timestamp() where tenant_id = $1
     returning signal_names_freed_at as freed_at`,
    [tenantId],
  )
  return rows[0]?.freed_at.toISOString() ?? null
}

/** Those of the tenants whose names were freed at any time, with when: ISO-8601. */
export async function readFreedNames(
  postgres: Queryable,
  tenantIds: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await postgres.query<{ tenant_id: string; freed_at: Date }>(
    `select tenant_id, signal_names_freed_at as freed_at from tenants
     where tenant_id = any($1) and signal_names_freed_at is not null`,
    [tenantIds],
  )
  return new Map(rows.map((row) => [row.tenant_id, row.freed_at.toISOString()]))
}
