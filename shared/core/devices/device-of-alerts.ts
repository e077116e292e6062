/**
 * The history of a device whose events have expired while alerts still name it: what the alerts
 * say. It has no install and no network, which were the events'.
 */
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { compareBytes } from '#shared/core/base/byte-order.ts'
import {
  type DeviceHistory,
  findLatestClient,
  joinSessions,
  joinUsers,
  type LatestConnection,
  type SessionPosition,
  type SessionRow,
  toClient,
  toRank,
  toRecentPage,
} from './device-history.ts'

/** Which sessions and users are asked for. */
export type AlertsPage = {
  deviceId: string
  sessionsLimit: number
  before: SessionPosition | null
  usersAfter: string | null
}

/**
 * @param alerts of the device, in any order
 * @returns null without any
 */
export function toDeviceOfAlerts(alerts: readonly Alert[], page: AlertsPage): DeviceHistory | null {
  if (alerts.length === 0) return null
  const rows = alerts.map(toRow)
  const sessions = joinSessions(rows)
  const asked = { limit: page.sessionsLimit, before: page.before, newest: null }
  const recent = toRecentPage(rows, asked)!
  const last = recent.sessions.at(-1)
  return {
    deviceId: page.deviceId,
    firstSeenAtMs: Math.min(...sessions.map((one) => one.startedAtMs)),
    lastSeenAtMs: Math.max(...sessions.map((one) => one.lastSeenAtMs)),
    peakRaspScore: Math.max(...sessions.map((one) => one.raspScore)),
    peakRiskScore: Math.max(...sessions.map((one) => one.riskScore)),
    install: null,
    client: toClient(findLatestClient(rows)),
    connection: null,
    users: joinUsers(rows).filter(
      (user) => page.usersAfter === null || compareBytes(user, page.usersAfter) > 0,
    ),
    nextUser: null,
    sessions: recent.sessions,
    sessionsTotal: sessions.length,
    next:
      recent.more && last !== undefined
        ? { startedAtMs: last.startedAtMs, sessionId: last.sessionId }
        : null,
  }
}

const noConnection: LatestConnection = ['', '', '', 0, '', []]

function toRow(alert: Alert): SessionRow {
  const { decision, entity, flags, rasp_score: score } = alert
  const atMs = Date.parse(alert.created_at)
  const {
    platform = '',
    sdk_version: sdk = '',
    app_version: app = '',
    device_model: model = '',
  } = alert
  return [
    entity.session.session_id,
    atMs,
    atMs,
    score,
    decision.action,
    flags,
    toRank(decision.risk_score, decision.action, true),
    flags,
    [platform, sdk, app, model],
    entity.user === undefined ? [] : [entity.user.user_id],
    noConnection,
  ]
}
