/** A device and a user as operators investigate them: history and alerts. */

import { z } from 'zod'
import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import { toIso } from '#shared/core/base/instants.ts'
import { phoneReadLimits } from '#shared/core/base/limits/entities.ts'
import { type DeviceScopes, toDevice, toSession } from '#shared/core/devices/device-answer.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { readAlertWork } from '#shared/io/alerts/alert-work-store.ts'
import { countVerdicts } from '#shared/io/alerts/counts/verdict-counts.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { findDeviceInAlerts } from '#shared/io/devices/find-in-alerts.ts'
import type { HistoryStore } from '#shared/io/devices/history-store.ts'
import type { LinkStore } from '#shared/io/devices/link-store.ts'
import type { UserStore } from '#shared/io/devices/user-store.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { PhoneStore } from '#shared/io/identity/phone-store.ts'
import { type FindPhones, readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import type { RiskPercentiles } from '#shared/io/outcomes/risk-percentiles.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { AlertReads } from '../alerts/read-alerts.ts'
import { withWork } from '../alerts/show-alert.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  alertsShownMax,
  devicePageSchema,
  deviceParams,
  deviceQuery,
  sessionsShownMax,
  userPageSchema,
  userParams,
  userQuery,
} from './entity-schemas.ts'

export type EntityDeps = {
  postgres: Postgres
  history: Pick<HistoryStore, 'findDevice'>
  users: UserStore
  links: LinkStore
  phones: PhoneStore
}

const reject = rejectUnavailable('The history cannot be read at the moment.')

type BoundedDeps = EntityDeps &
  Pick<AlertReads, 'listAlerts' | 'listUncounted'> & {
    findPhones: FindPhones
    findPercentile: RiskPercentiles['find']
  }

/** Adds the routes. */
export function addEntityRoutes(
  app: ConsoleApp,
  { limited, ...deps }: Omit<BoundedDeps, 'findPhones'> & { limited: QueryLimiter },
): void {
  const find: FindPhones = (query) => deps.phones.findPhonesOfDevices(query)
  const findPhones = limited('device_phones', phoneReadLimits, find)
  addDevice(app, { ...deps, findPhones })
  addUser(app, { ...deps, findPhones })
}

function addDevice(app: ConsoleApp, deps: BoundedDeps): void {
  app.get(
    '/tenants/:tenant_id/devices/:device_id',
    {
      schema: {
        operationId: 'findDevice',
        conditional: true,
        tags: ['Entities'],
        summary: 'A device: its sessions, users and alerts',
        params: deviceParams,
        querystring: deviceQuery,
        problems: ['device_not_found'],
        response: { 200: devicePageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, device_id: deviceId }, query }) => {
      await requireTenant(deps.postgres, tenantId)
      const scopes: DeviceScopes = {
        sessions: { list: 'sessions', tenantId, filters: [deviceId] },
        users: { list: 'users', tenantId, filters: [deviceId] },
      }
      const cursor = query.sessions_cursor
      const asked = {
        tenantId,
        deviceId,
        sessionsLimit: query.sessions_limit,
        before: cursor === undefined ? null : toSessionPosition(scopes.sessions, cursor),
      }
      const device =
        (await deps.history.findDevice(asked).catch(reject)) ??
        (await findDeviceInAlerts(deps, { ...asked, usersAfter: null }))
      if (device === null) {
        throw new Problem('device_not_found', 'There is no telemetry of this device.')
      }
      const sessionIds = device.sessions.map(({ sessionId }) => sessionId)
      const [alerts, toPhone, percentile, users] = await Promise.all([
        readAlerts(deps, tenantId, { kind: 'device', id: deviceId }),
        readPhoneFields(deps.findPhones, { tenantId, deviceIds: [deviceId] }),
        deps.findPercentile({ tenantId, score: device.peakRiskScore }),
        deps.links.findSessionUsers({ tenantId, deviceId, sessionIds }).catch(reject),
      ])
      const shown = toDevice(device, scopes, { ...toPhone(deviceId), ...percentile })
      // The users of the page are all that it shows: it has no parameter for further ones.
      const sessions = shown.sessions.map((session) => {
        const named = users.get(session.session_id)
        return { ...session, users: named?.users ?? [], users_total: named?.total ?? 0 }
      })
      return { device: { ...shown, sessions, users_cursor: null }, alerts }
    },
  )
}

function addUser(app: ConsoleApp, deps: BoundedDeps): void {
  app.get(
    '/tenants/:tenant_id/users/:user_id',
    {
      schema: {
        operationId: 'findUser',
        conditional: true,
        tags: ['Entities'],
        summary: 'A user or account: its devices, sessions and alerts',
        params: userParams,
        querystring: userQuery,
        problems: ['user_not_found'],
        response: { 200: userPageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, user_id: userId }, query }) => {
      await requireTenant(deps.postgres, tenantId)
      const scope: CursorScope = { list: 'user-devices', tenantId, filters: [userId] }
      const { devices_limit: limit, devices_cursor: cursor } = query
      const after = cursor === undefined ? null : toDevicePosition(scope, cursor)
      const totals = await deps.users.findUserTotals({ tenantId, userId }).catch(reject)
      if (totals === null) {
        throw new Problem('user_not_found', 'There is no telemetry of this user or account.')
      }
      const found = await deps.users
        .listUserDevices({ tenantId, userId, limit: limit + 1, after })
        .catch(reject)
      const devices = found.slice(0, limit)
      const deviceIds = devices.map((device) => device.deviceId)
      const [alerts, toPhone, sessions] = await Promise.all([
        readAlerts(deps, tenantId, { kind: 'user', id: userId }),
        readPhoneFields(deps.findPhones, { tenantId, deviceIds }),
        deps.links
          .listUserSessions({ tenantId, deviceIds, userId, limit: sessionsShownMax })
          .catch(reject),
      ])
      const last = found.length > limit ? devices.at(-1) : undefined
      return {
        user: {
          user_id: userId,
          first_seen_at: toIso(totals.firstSeenAtMs),
          last_seen_at: toIso(totals.lastSeenAtMs),
          peak_rasp_score: totals.peakRaspScore,
          risk_score: totals.peakRiskScore,
          devices: devices.map((device) => ({
            device_id: device.deviceId,
            first_seen_at: toIso(device.firstSeenAtMs),
            last_seen_at: toIso(device.lastSeenAtMs),
            peak_rasp_score: device.peakRaspScore,
            risk_score: device.peakRiskScore,
            ...toPhone(device.deviceId),
          })),
          devices_total: totals.devices,
          devices_cursor: last ? encodeCursor(scope, [last.lastSeenAtMs, last.deviceId]) : null,
        },
        sessions: sessions.map((session) => ({
          device_id: session.deviceId,
          ...toSession(session),
        })),
        alerts,
      }
    },
  )
}

/** The newest alerts of a device or a user, with exact totals. */
async function readAlerts(
  { postgres, listAlerts }: BoundedDeps,
  tenantId: string,
  { kind, id }: { kind: 'device' | 'user'; id: string },
) {
  const filter: AlertFilter = kind === 'device' ? { device_id: id } : { user_id: id }
  const subject = { kind, ids: [id] }
  const [page, verdicts] = await Promise.all([
    listAlerts({ tenantId, filter, limit: alertsShownMax, after: null }),
    countVerdicts(postgres, tenantId, subject),
  ])
  const ids = page.alerts.map((alert) => alert.alert_id)
  const work = await readAlertWork(postgres, tenantId, ids)
  const data = page.alerts.map((alert) => withWork(alert, work.get(alert.alert_id)))
  return { total: page.total, verdicts, data }
}

const positionSchema = z.tuple([instantMsSchema, idSchema])

function toSessionPosition(scope: CursorScope, cursor: string) {
  const [startedAtMs, sessionId] = decodeCursor(scope, cursor, positionSchema, 'sessions_cursor')
  return { startedAtMs, sessionId }
}

function toDevicePosition(scope: CursorScope, cursor: string) {
  const [lastSeenAtMs, deviceId] = decodeCursor(scope, cursor, positionSchema, 'devices_cursor')
  return { lastSeenAtMs, deviceId }
}
