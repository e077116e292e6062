/** A device's history as the REST API and the admin API answer it. */
import { toIso } from '#shared/core/base/instants.ts'
import { type CursorScope, encodeCursor } from '#shared/core/http/pagination.ts'
import type { PhoneField } from '#shared/core/identity/phone-answer.ts'
import type { DeviceHistory, SessionHistory } from './device-history.ts'

type ClientFacts = Pick<SessionHistory, 'platform' | 'sdkVersion' | 'appVersion' | 'deviceModel'>
type ClientField = 'platform' | 'sdk_version' | 'app_version' | 'device_model'

/** The lists of a device that cursors continue. */
export type DeviceScopes = Record<'sessions' | 'users', CursorScope>

/** A session in an answer. */
export const toSession = (session: SessionHistory) => ({
  session_id: session.sessionId,
  rasp_action: session.raspAction,
  started_at: toIso(session.startedAtMs),
  last_seen_at: toIso(session.lastSeenAtMs),
  rasp_score: session.raspScore,
  flags: session.flags,
  risk_score: session.riskScore,
  action: session.action,
  risk_flags: session.riskFlags,
  ...toClientFields(session),
  connection: session.connection,
})

/** What the app said of itself; members that it did not send are left out. */
export const toClientFields = ({
  platform,
  sdkVersion,
  appVersion,
  deviceModel,
}: ClientFacts): Partial<Record<ClientField, string>> => ({
  ...(platform === '' ? {} : { platform }),
  ...(sdkVersion === '' ? {} : { sdk_version: sdkVersion }),
  ...(appVersion === '' ? {} : { app_version: appVersion }),
  ...(deviceModel === '' ? {} : { device_model: deviceModel }),
})

const toInstall = (install: DeviceHistory['install']) =>
  install && {
    provider: install.provider,
    verdict: install.verdict,
    level: install.level,
    registered_at: toIso(install.registeredAtMs),
    expires_at: toIso(install.expiresAtMs),
  }

/**
 * All fields except the two lists, which a large answer sends in pieces.
 * @param beside what is read elsewhere: the phone, and the percentile where it is known
 */
export function toDeviceFields(
  device: DeviceHistory,
  { sessions, users }: DeviceScopes,
  beside: PhoneField & { risk_percentile?: number },
) {
  const { next, nextUser } = device
  return {
    device_id: device.deviceId,
    first_seen_at: toIso(device.firstSeenAtMs),
    last_seen_at: toIso(device.lastSeenAtMs),
    peak_rasp_score: device.peakRaspScore,
    risk_score: device.peakRiskScore,
    ...toClientFields(device.client),
    connection: device.connection,
    install: toInstall(device.install),
    ...beside,
    users_cursor: nextUser === null ? null : encodeCursor(users, [nextUser]),
    sessions_total: device.sessionsTotal,
    sessions_cursor: next && encodeCursor(sessions, [next.startedAtMs, next.sessionId]),
  }
}

/** The whole answer. */
export const toDevice = (
  device: DeviceHistory,
  scopes: DeviceScopes,
  beside: Parameters<typeof toDeviceFields>[2],
) => ({
  ...toDeviceFields(device, scopes, beside),
  users_seen_on: device.users,
  sessions: device.sessions.map(toSession),
})
