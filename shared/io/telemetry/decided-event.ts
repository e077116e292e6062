/** An event of a tenant with its decision, as the REST API shows it, from its rows in ClickHouse. */
import { toIso } from '#shared/core/base/instants.ts'
import type { Connection } from '#shared/core/network/connection-answer.ts'
import { type ConnectionColumns, toConnection } from '#shared/core/network/connection-columns.ts'
import type { Action, Reason } from '#shared/core/scoring/score.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import { type DecisionRow, toDecidedRisk } from './decision-store.ts'
import { readReasons } from './stored-reasons.ts'

export type DecidedEvent = {
  tenantId: string
  deviceId: string
  sessionId: string
  eventId: string
  receivedAtMs: number
  /** By the client's clock; null when it sent none, or none that reads as a time. */
  occurredAtMs: number | null
  /** Null when the client sent none. */
  userId: string | null
  accountId: string | null
  sdkVersion: string
  platform: string
  batchType: string
  /** Of the app and the phone; empty when the client sent none. */
  appVersion: string
  osVersion: string
  deviceBrand: string
  deviceModel: string
  /** Null when nothing was measured. */
  connection: Connection | null
  raspScore: number
  raspAction: Action
  policyVersion: number
  /** The edge's own until the scorer has decided. */
  decided: Risk
}

/** SQL: the columns of a `DecidedEventRow`, of `telemetry`. */
export const decidedEventColumns = `tenant_id as tenantId, device_id as deviceId,
  session_id as sessionId, event_id as eventId,
  toUnixTimestamp64Milli(received_at) as receivedAtMs,
  toUnixTimestamp64Milli(occurred_at) as occurredAtMs, user_id as userId,
  account_id as accountId, sdk_version as sdkVersion, telemetry.platform as platform,
  batch_type as batchType, app_version as appVersion, os_version as osVersion,
  device_brand as deviceBrand, device_model as deviceModel, connection_network,
  connection_country, connection_asn, connection_organization, connection_kinds,
  rasp_score as raspScore, toString(rasp_action) as raspAction, reasons,
  policy_version as policyVersion`

/** As ClickHouse has it: an id that is not there is empty, reasons are JSON text. */
export type DecidedEventRow = Omit<
  DecidedEvent,
  'userId' | 'accountId' | 'decided' | 'connection'
> &
  ConnectionColumns & {
    userId: string
    accountId: string
    reasons: string
  }

/** @param decision undefined when the event has no row of `decisions` */
export function toDecidedEvent(
  { reasons, userId, accountId, ...row }: DecidedEventRow,
  decision: DecisionRow | undefined,
): DecidedEvent {
  const {
    connection_network,
    connection_country,
    connection_asn,
    connection_organization,
    connection_kinds,
    ...event
  } = row
  const own: Reason[] | null = readReasons(reasons)
  return {
    ...event,
    connection: toConnection(row),
    userId: userId === '' ? null : userId,
    accountId: accountId === '' ? null : accountId,
    decided: toDecidedRisk({ ...row, reasons: own }, decision),
  }
}

/** An event and what was decided, as `eventSchema` has it. */
export function toEvent(event: DecidedEvent) {
  const { riskScore, action, reasons } = event.decided
  return {
    event_id: event.eventId,
    tenant_id: event.tenantId,
    device_id: event.deviceId,
    session_id: event.sessionId,
    ...(event.userId === null ? {} : { user_id: event.userId }),
    ...(event.accountId === null ? {} : { account_id: event.accountId }),
    sdk_meta: {
      sdk_version: event.sdkVersion,
      platform: event.platform,
      batch_type: event.batchType,
    },
    ...(event.appVersion === '' ? {} : { app_version: event.appVersion }),
    ...(event.osVersion === '' ? {} : { os_version: event.osVersion }),
    ...(event.deviceBrand === '' ? {} : { device_brand: event.deviceBrand }),
    ...(event.deviceModel === '' ? {} : { device_model: event.deviceModel }),
    connection: event.connection,
    received_at: toIso(event.receivedAtMs),
    ...(event.occurredAtMs === null ? {} : { occurred_at: toIso(event.occurredAtMs) }),
    rasp_score: event.raspScore,
    rasp_action: event.raspAction,
    risk_score: riskScore,
    action,
    flags: reasons.map(({ code }) => code),
    reasons,
    policy_version: event.policyVersion,
  }
}
