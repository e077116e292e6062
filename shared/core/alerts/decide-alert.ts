/** When an event raises an alert. */
import { toAlertId } from '#shared/core/base/ids.ts'
import { toPlatform } from '#shared/core/devices/platform-name.ts'
import type { PhoneLink } from '#shared/core/identity/decide-link.ts'
import { parseNetwork } from '#shared/core/network/address.ts'
import type { ConnectionColumns } from '#shared/core/network/connection-columns.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { readInstall } from '#shared/core/telemetry/install.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import { type Decision, type Disposition, initialDisposition } from './dispositions.ts'

/** A phone, and how certain it is that the install is on it, from 0 to 1. */
export type AlertPhone = { phoneId: string; confidence: number }

/** An alert that an event raises, before it has its `seq`. */
export type AlertCandidate = {
  alertId: string
  tenantId: string
  deviceId: string
  sessionId: string
  userId: string | null
  eventId: string
  action: Decision
  riskScore: number
  raspScore: number
  reasons: Reason[]
  policyVersion: number
  /** Of the app and the phone; null where the telemetry does not say. */
  platform: string | null
  sdkVersion: string | null
  appVersion: string | null
  deviceModel: string | null
  connection: ConnectionColumns
  /** That the install is on; left out where it is not known. */
  phone?: AlertPhone
  /** Continues the trace of the event; left out when it is not traced. */
  traceparent?: string
}

/** @returns the phone that the install of an alert counts as on */
const toAlertPhone = ({ phoneId, kind, confidence }: PhoneLink): AlertPhone => ({
  phoneId,
  // One that may be on another phone is on its own as far as it is not on that one.
  confidence: kind === 'possible' ? 1 - confidence : confidence,
})

/**
 * Decides whether an event raises an alert.
 * @param link of its install; null where it is not known
 * @returns null when the action is ALLOW
 */
export function decideAlert(
  event: AcceptedEvent,
  risk: Risk,
  link: PhoneLink | null = null,
): AlertCandidate | null {
  if (risk.action === 'ALLOW') return null
  const { device_id: deviceId, session_id: sessionId, sdk_meta: meta } = event.body
  const { appVersion, deviceModel } = readInstall(event.body)
  return {
    alertId: toAlertId({
      tenantId: event.tenant_id,
      deviceId,
      sessionId,
      action: risk.action,
    }),
    tenantId: event.tenant_id,
    deviceId,
    sessionId,
    userId: event.body.user_id ?? event.body.account_id ?? null,
    eventId: event.event_id,
    action: risk.action,
    riskScore: risk.riskScore,
    raspScore: event.rasp_score,
    reasons: risk.reasons,
    policyVersion: event.policy_version,
    platform: toText(toPlatform(meta.platform)),
    sdkVersion: toText(meta.sdk_version),
    appVersion: toText(appVersion),
    deviceModel: toText(deviceModel),
    connection: toColumns(event.connection),
    ...(link === null ? {} : { phone: toAlertPhone(link) }),
  }
}

/** Of an alert whose event has no measured connection. */
export const noConnection: ConnectionColumns = {
  connection_network: null,
  connection_country: null,
  connection_asn: null,
  connection_organization: null,
  connection_kinds: null,
}

/** What is no network, Postgres could not store: then the alert is raised without a connection. */
function toColumns(connection: AcceptedEvent['connection']): ConnectionColumns {
  if (connection === undefined || parseNetwork(connection.network) === null) return noConnection
  return {
    connection_network: connection.network,
    connection_country: toText(connection.country ?? ''),
    connection_asn: connection.asn ?? null,
    connection_organization: toText(connection.organization ?? ''),
    connection_kinds: connection.kinds ?? [],
  }
}

/** A text that Postgres can store, which has no NUL; null for an empty one. */
const toText = (sent: string): string | null => sent.replaceAll('\u0000', '').toWellFormed() || null

/**
 * The row of a candidate once it has its place.
 * @param more.createdAt the time of the commit
 */
export const toAlertRow = (
  candidate: AlertCandidate,
  more: { seq: number; createdAt: Date; disposition?: Disposition },
) => ({
  tenant_id: candidate.tenantId,
  alert_id: candidate.alertId,
  event_id: candidate.eventId,
  seq: more.seq,
  device_id: candidate.deviceId,
  session_id: candidate.sessionId,
  user_id: candidate.userId,
  action: candidate.action,
  risk_score: candidate.riskScore,
  rasp_score: candidate.raspScore,
  reasons: candidate.reasons,
  policy_version: candidate.policyVersion,
  disposition: more.disposition ?? initialDisposition,
  platform: candidate.platform,
  sdk_version: candidate.sdkVersion,
  app_version: candidate.appVersion,
  device_model: candidate.deviceModel,
  ...candidate.connection,
  phone_id: candidate.phone?.phoneId ?? null,
  phone_confidence: candidate.phone?.confidence ?? null,
  created_at: more.createdAt,
})
