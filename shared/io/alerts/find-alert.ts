/** One alert found by its id. */
import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { alertColumns } from './alert-columns.ts'

/** Whether Postgres can store a text: a NUL would be an error of a query. */
export const canBeStored = (text: string): boolean => !text.includes('\u0000')

/** One alert, of any tenant when neither a tenant nor a scope is named. */
export type AlertId = {
  alertId: string
  tenantId?: string | undefined
  scope?: TenantScope | undefined
}

/** Finds one alert by its id. @throws PostgresUnavailableError */
export async function findAlert(
  postgres: Queryable,
  { alertId, tenantId, scope = 'all' }: AlertId,
): Promise<Alert | null> {
  if (!canBeStored(alertId)) return null
  const { rows } = await postgres.query<AlertRow>(
    `select ${alertColumns} from alerts
     where alert_id = $1 and ($2::text[] is null or tenant_id = any($2)) limit 1`,
    [alertId, tenantId === undefined ? toSlugs(scope) : [tenantId]],
  )
  return rows[0] === undefined ? null : toAlert(rows[0])
}
