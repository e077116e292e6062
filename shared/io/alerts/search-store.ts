/**
 * Searches Postgres for ids: tenants, alerts, cases and phones of corrections by their beginning,
 * deliveries by the whole; cases also by whom they and their alerts are about.
 */
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type FoundId = {
  kind: 'tenant' | 'alert' | 'case' | 'delivery' | 'phone'
  tenantId: string
  id: string
}

/** The newest alerts of a device or a user whose cases are looked at, of each tenant. */
const alertsReadMax = 200

/** SQL: the cases of the newest alerts of a device or a user `$1` of a tenant `t`. */
const casesOf = (column: 'device_id' | 'user_id') => `
  select case_id from (
    select case_id from alerts where tenant_id = t.tenant_id and ${column} = $1
    order by created_at desc, alert_id desc limit ${alertsReadMax}) as newest`

/**
 * SQL: cases by the beginning of their id, of a subject, and of a device or a user of their alerts;
 * open ones first. Each look is one of an index.
 */
const casesSql = `
  select 'case', c.tenant_id, c.case_id from cases as c
  where ($2::text[] is null or c.tenant_id = any($2)) and c.case_id in (
    (select case_id from cases
     where $1 like 'cas\\_%' and case_id >= $1 and case_id < $1 || '~'
       and ($2::text[] is null or tenant_id = any($2))
     order by case_id limit $3)
    union all
    select case_id from cases where subject_id = $1 and merged_into is null
    union all
    select of_alerts.case_id from tenants as t
    cross join lateral (${casesOf('device_id')} union all ${casesOf('user_id')}) as of_alerts
    where $2::text[] is null or t.tenant_id = any($2))
  order by (c.closed_at is null) desc, c.latest_alert_at desc, c.case_id limit $3`

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
     (${casesSql})
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
