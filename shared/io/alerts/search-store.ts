/**
 * Searches Postgres for ids: tenants, alerts and phones of corrections by their beginning,
 * deliveries by the whole.
 */
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type FoundId = {
  kind: 'tenant' | 'alert' | 'delivery' | 'phone'
  tenantId: string
  id: string
}

/** @returns at most `limit` of each kind, tenants first */
export async function searchIds(
  db: Queryable,
  { text, scope, limit }: { text: string; scope: TenantScope; limit: number },
): Promise<FoundId[]> {
  const { rows } = await db.query<{ kind: FoundId['kind']; tenant_id: string; id: string }>(
    `(select 'tenant' as kind, tenant_id, tenant_id as id from tenants
      where starts_with(tenant_id, $1) and ($2::text[] is null or tenant_id = any($2))
      order by tenant_id limit $3)
     union all
     (select 'alert', tenant_id, alert_id from alerts
      where $1 like 'alr\\_%' and alert_id >= $1 and alert_id < $1 || '~'
        and ($2::text[] is null or tenant_id = any($2))
      order by alert_id limit $3)
     union all
     (select 'delivery', tenant_id, delivery_id from deliveries
      where delivery_id = $1 and ($2::text[] is null or tenant_id = any($2)))
     union all
     (select distinct 'phone', tenant_id, phone_id from phone_corrections
      where $1 like 'phn\\_%' and starts_with(phone_id, $1) and undone_at is null
        and ($2::text[] is null or tenant_id = any($2))
      order by phone_id limit $3)`,
    [text, toSlugs(scope), limit],
  )
  return rows.map((row) => ({ kind: row.kind, tenantId: row.tenant_id, id: row.id }))
}
