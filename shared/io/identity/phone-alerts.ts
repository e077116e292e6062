/** Lists the newest alerts of the installs of a phone. */
import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { phoneAlertsShownMax } from '#shared/core/base/limits/entities.ts'
import { alertColumns } from '#shared/io/alerts/alert-columns.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

export type PhoneAlerts = {
  /** Newest first, with how many there are. @throws PostgresUnavailableError */
  listPhoneAlerts: (query: {
    tenantId: string
    deviceIds: readonly string[]
  }) => Promise<{ alerts: Alert[]; total: number }>
}

export const createPhoneAlerts = (postgres: Queryable): PhoneAlerts => ({
  listPhoneAlerts: async ({ tenantId, deviceIds }) => {
    const { rows } = await postgres.query<AlertRow & { total: number }>(
      `select ${alertColumns}, count(*) over () as total from alerts
       where tenant_id = $1 and device_id = any($2)
       order by created_at desc, alert_id desc limit ${phoneAlertsShownMax}`,
      [tenantId, deviceIds],
    )
    return { alerts: rows.map(toAlert), total: rows[0]?.total ?? 0 }
  },
})
