/** An alert as Postgres has it, and what clients and people see of it. */
import { type Reason, toSeverity } from '#shared/core/scoring/score.ts'
import type { Alert, OperatorAlert } from './alert-schema.ts'
import type { Decision, Disposition } from './dispositions.ts'

/** A row of the table `alerts`, as far as an alert is made of it. */
export type AlertRow = {
  tenant_id: string
  alert_id: string
  /** The event that raised it. */
  event_id: string
  /** The place among the tenant's alerts. */
  seq: number
  device_id: string
  session_id: string
  user_id: string | null
  action: Decision
  risk_score: number
  rasp_score: number
  reasons: Reason[]
  disposition: Disposition
  created_at: Date
}

const columnsOfRow: Record<keyof AlertRow, true> = {
  tenant_id: true,
  alert_id: true,
  event_id: true,
  seq: true,
  device_id: true,
  session_id: true,
  user_id: true,
  action: true,
  risk_score: true,
  rasp_score: true,
  reasons: true,
  disposition: true,
  created_at: true,
}

/** The columns of one alert, for every statement that returns alerts. */
export const alertColumns = Object.keys(columnsOfRow).join(', ')

/** The alert as the REST API and webhooks show it. */
export const toAlert = (row: AlertRow): Alert => ({
  alert_id: row.alert_id,
  tenant_id: row.tenant_id,
  event_id: row.event_id,
  seq: row.seq,
  decision: {
    action: row.action,
    severity: toSeverity(row.risk_score),
    risk_score: row.risk_score,
  },
  rasp_score: row.rasp_score,
  entity: {
    device: { device_id: row.device_id },
    session: { session_id: row.session_id },
    ...(row.user_id === null ? {} : { user: { user_id: row.user_id } }),
  },
  flags: row.reasons.map(({ code }) => code),
  reasons: row.reasons,
  disposition: row.disposition,
  created_at: row.created_at.toISOString(),
})

/** An alert, with its assignee where it is known. */
type ShownAlert = Alert & Partial<Pick<OperatorAlert, 'assignee'>>

/**
 * The fields of an alert one by one, as people read them: the columns of CSV, what `di alerts show`
 * prints, and the facts of the console's page.
 */
export const alertFields = {
  alert_id: (alert) => alert.alert_id,
  created_at: (alert) => alert.created_at,
  action: (alert) => alert.decision.action,
  severity: (alert) => alert.decision.severity,
  risk_score: (alert) => alert.decision.risk_score,
  rasp_score: (alert) => alert.rasp_score,
  disposition: (alert) => alert.disposition,
  assignee: (alert) => alert.assignee ?? '',
  device_id: (alert) => alert.entity.device.device_id,
  session_id: (alert) => alert.entity.session.session_id,
  user_id: (alert) => alert.entity.user?.user_id ?? '',
  flags: (alert) => alert.flags.join(' '),
  event_id: (alert) => alert.event_id,
} satisfies Record<string, (alert: ShownAlert) => string | number>
export type AlertField = keyof typeof alertFields
export const alertFieldNames = Object.keys(alertFields) as AlertField[]
