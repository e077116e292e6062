/** Creations of tenants that were undone, as the audit log has them. */
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/**
 * Whether a tenant that Postgres does not have is one whose creation was undone, rather than one
 * that Postgres forgot.
 */
export async function isUndone(db: Queryable, tenantId: string): Promise<boolean> {
  const { rows } = await db.query<{ action: string }>(
    `select action from audit_log
     where tenant_id = $1 and action in ('tenant.created', 'tenant.creation_undone')
     order by audit_id desc limit 1`,
    [tenantId],
  )
  return rows[0]?.action === 'tenant.creation_undone'
}
