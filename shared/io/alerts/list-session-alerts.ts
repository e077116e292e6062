/** Lists the alerts of one session, one per action at most, each with the event that raised it. */

import { type AlertRow, toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { alertColumns } from './alert-columns.ts'
import { canBeStored } from './find-alert.ts'

export type SessionAlert = { alert: Alert; eventId: string; policyVersion: number }

/** @returns oldest first @throws PostgresUnavailableError */
export async function listSessionAlerts(
  postgres: Queryable,
  session: { tenantId: string; deviceId: string; sessionId: string },
): Promise<SessionAlert[]> {
  const { tenantId, deviceId, sessionId } = session
  if (!canBeStored(deviceId) || !canBeStored(sessionId)) return []
  const { rows } = await postgres.query<AlertRow & { policy_version: number }>(
    `select ${alertColumns}, policy_version from alerts
     where tenant_id = $1 and device_id = $2 and session_id = $3 order by seq`,
    [tenantId, deviceId, sessionId],
  )
  return rows.map((row) => ({
    alert: toAlert(row),
    eventId: row.event_id,
    policyVersion: row.policy_version,
  }))
}
