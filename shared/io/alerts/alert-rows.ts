/** Rows of alerts: the columns that every statement returns, and one alert found by its id. */
import {
  type Alert,
  type AlertCandidate,
  type Decision,
  type Disposition,
  toAlert,
} from '#shared/core/alerts/alert.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** The columns of one alert, for every statement that returns alerts. */
export const alertColumns = `tenant_id, alert_id, event_id, seq, device_id, session_id, user_id, action,
  risk_score, rasp_score, reasons, disposition, created_at`

/** A row of `alertColumns`. */
export type AlertRow = {
  tenant_id: string
  alert_id: string
  event_id: string
  seq: number
  device_id: string
  session_id: string
  user_id: string | null
  action: Decision
  risk_score: number
  rasp_score: number
  reasons: AlertCandidate['reasons']
  disposition: Disposition
  created_at: Date
}

/** Converts a row to the alert that clients see. */
export function toAlertOfRow(row: AlertRow): Alert {
  return toAlert(
    {
      alertId: row.alert_id,
      tenantId: row.tenant_id,
      eventId: row.event_id,
      deviceId: row.device_id,
      sessionId: row.session_id,
      userId: row.user_id,
      action: row.action,
      riskScore: row.risk_score,
      raspScore: row.rasp_score,
      reasons: row.reasons,
    },
    { seq: row.seq, disposition: row.disposition, createdAt: row.created_at },
  )
}

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
  return rows[0] === undefined ? null : toAlertOfRow(rows[0])
}
