/** An alert as Postgres has it, and what clients and people see of it. */

import { toShown } from '#shared/core/identity/phone.ts'
import { type ConnectionColumns, toConnection } from '#shared/core/network/connection-columns.ts'
import { type Reason, toSeverity } from '#shared/core/scoring/score.ts'
import { toActor } from './alert-actors.ts'
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
  /** Of the app and the phone; null where the telemetry did not say. */
  platform: string | null
  sdk_version: string | null
  app_version: string | null
  device_model: string | null
  /** The phone of its install when it was raised; null where that was not known. */
  phone_id: string | null
  phone_confidence: number | null
} & ConnectionColumns &
  ChangeColumns

/** What people change of an alert, beside its disposition. */
type ChangeColumns = {
  /** The last change that clients see; null since it was raised. */
  changed_at: Date | null
  /** The email of an operator. */
  assignee: string | null
  /** The assignee's `operator_id`; null when no operator has the email. */
  assignee_id: string | null
}

/** Of an alert that is raised. */
export const unchanged: ChangeColumns = { changed_at: null, assignee: null, assignee_id: null }

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
  platform: true,
  sdk_version: true,
  app_version: true,
  device_model: true,
  phone_id: true,
  phone_confidence: true,
  connection_network: true,
  connection_country: true,
  connection_asn: true,
  connection_organization: true,
  connection_kinds: true,
  changed_at: true,
  assignee: true,
  assignee_id: true,
}

export const alertRowColumns = Object.keys(columnsOfRow) as (keyof AlertRow)[]

/** The facts of the app and the phone that are known. */
function toContext(row: AlertRow) {
  const { platform, sdk_version, app_version, device_model } = row
  const all = { platform, sdk_version, app_version, device_model }
  const known = Object.entries(all).filter(([, text]) => text !== null && text !== '')
  return Object.fromEntries(known) as { [Name in keyof typeof all]?: string }
}

const toPhone = ({ phone_id, phone_confidence }: AlertRow) =>
  phone_id === null ? null : { phone_id, confidence: toShown(phone_confidence ?? 1) }

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
    phone: toPhone(row),
  },
  flags: row.reasons.map(({ code }) => code),
  reasons: row.reasons,
  disposition: row.disposition,
  ...toContext(row),
  connection: toConnection(row),
  created_at: row.created_at.toISOString(),
  updated_at: (row.changed_at ?? row.created_at).toISOString(),
  assignee: row.assignee === null ? null : toActor(row.assignee, row.assignee_id),
})

/** An alert as people see it. */
type ShownAlert = Omit<Alert, 'assignee'> & Pick<OperatorAlert, 'assignee'>

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
  updated_at: (alert) => alert.updated_at,
  platform: (alert) => alert.platform ?? '',
  sdk_version: (alert) => alert.sdk_version ?? '',
  app_version: (alert) => alert.app_version ?? '',
  device_model: (alert) => alert.device_model ?? '',
  country: ({ connection }) => connection?.country ?? '',
  asn: ({ connection }) => connection?.asn ?? '',
  organization: ({ connection }) => connection?.organization ?? '',
  network: ({ connection }) => connection?.network ?? '',
  network_kinds: ({ connection }) => connection?.kinds.join(' ') ?? '',
  phone_id: ({ entity }) => entity.phone?.phone_id ?? '',
} satisfies Record<string, (alert: ShownAlert) => string | number>
export type AlertField = keyof typeof alertFields
export const alertFieldNames = Object.keys(alertFields) as AlertField[]
