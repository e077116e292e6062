/**
 * `GET /v1/di/devices/{device_id}`: the history of a device. A response has up to 10,000 sessions
 * and users; cursors continue. The history of a device with many rows is read and sent in pieces.
 */
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import {
  type DeviceScopes,
  toDevice,
  toDeviceFields,
  toSession,
} from '#shared/core/devices/device-answer.ts'
import type { DeviceHistory, SessionPosition } from '#shared/core/devices/device-history.ts'
import {
  type DeviceQuery,
  devicePathSchema,
  deviceQuerySchema,
  deviceSchema,
} from '#shared/core/http/api-schemas.ts'
import { type CursorScope, decodeCursor, instantMsSchema } from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { PhoneField } from '#shared/core/identity/phone-answer.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { findDeviceInAlerts } from '#shared/io/devices/find-in-alerts.ts'
import type { HistoryStore } from '#shared/io/devices/history-store.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { type FindPhones, readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import type { RiskPercentiles } from '#shared/io/outcomes/risk-percentiles.ts'
import type { Caller } from '../http/authenticate.ts'
import { compressed } from '../http/compress-responses.ts'
import { streamJson } from '../http/stream-json.ts'
import { deviceExample } from '../openapi/examples.ts'
import { decodedPath, requireShortPath } from './decoded-path.ts'

const sessionPositionSchema = z.tuple([instantMsSchema, idSchema])
const userPositionSchema = z.tuple([idSchema])

type DeviceRouteDeps = Pick<HistoryStore, 'findSmallDevice' | 'findLargeDevice'> & {
  /** For a device whose events have expired: the latest alerts that name it. */
  listUncounted: AlertStore['listUncounted']
  findPhones: FindPhones
  findPercentile: RiskPercentiles['find']
  /** Waits for a permit for a large response. The permit ends with the response. */
  beginLargeResponse: (tenantId: string, reply: FastifyReply) => Promise<void>
}

type DeviceRequest = { params: { device_id: string }; query: DeviceQuery; caller: Caller }

/** Adds the route, also for ids whose slashes a proxy has decoded. */
export function addDeviceRoutes(app: ZodApp, deps: DeviceRouteDeps): void {
  const handler = async (request: DeviceRequest, reply: FastifyReply) => {
    const { tenantId, chargeRows } = request.caller
    const { device_id: deviceId } = request.params
    const scopes: DeviceScopes = {
      sessions: { list: 'sessions', tenantId, filters: [deviceId] },
      users: { list: 'users', tenantId, filters: [deviceId] },
    }
    const query = { tenantId, deviceId, ...toPositions(request.query, scopes) }
    const [small, toPhoneField] = await Promise.all([
      deps.findSmallDevice(query).catch(reject),
      readPhoneFields(deps.findPhones, { tenantId, deviceIds: [deviceId] }),
    ])
    const isLarge = small === 'large'
    if (isLarge) await deps.beginLargeResponse(tenantId, reply)
    const found = isLarge ? await deps.findLargeDevice(query).catch(reject) : small
    const device = requireFound(found ?? (await findDeviceInAlerts(deps, query)))
    const asked = { tenantId, score: device.peakRiskScore }
    const beside = { ...toPhoneField(deviceId), ...(await deps.findPercentile(asked)) }
    chargeRows(device.sessions.length + device.users.length)
    reply.type('application/json; charset=utf-8')
    return isLarge ? streamDevice(device, scopes, beside) : toDevice(device, scopes, beside)
  }
  app.get(
    '/v1/di/devices/:device_id',
    {
      ...compressed,
      schema: {
        operationId: 'findDevice',
        conditional: true,
        tags: ['Devices'],
        summary: 'The full history of one device',
        description:
          'An accepted event is visible here within a second. A device whose events have expired has what its latest 500 alerts say. One response has up to 10,000 sessions and users. Every 50 of them count as one call of the tenant’s rate.',
        params: devicePathSchema,
        querystring: deviceQuerySchema,
        problems: ['device_not_found'],
        response: { 200: deviceSchema },
        example: deviceExample,
      },
    },
    handler as never,
  )
  app.get(
    '/v1/di/devices/*',
    {
      ...compressed,
      preValidation: requireShortPath,
      schema: {
        hide: true,
        conditional: true,
        params: decodedPath('device_id', devicePathSchema),
        querystring: deviceQuerySchema,
      },
    },
    handler as never,
  )
}

const reject = rejectUnavailable('The device history cannot be read at the moment.')

function requireFound(device: DeviceHistory | null): DeviceHistory {
  if (device !== null) return device
  // The same for every id: there is nothing below a device, and a guess at it is an id with a slash.
  const detail =
    'There is no telemetry of this device, or not yet. Its id is everything after /v1/di/devices/.'
  throw new Problem('device_not_found', detail)
}

function toPositions(query: DeviceQuery, scopes: DeviceScopes) {
  const { sessions_limit: sessionsLimit, sessions_cursor: older, users_cursor: further } = query
  return {
    sessionsLimit,
    before: older === undefined ? null : toSessionPosition(scopes.sessions, older),
    usersAfter:
      further === undefined
        ? null
        : decodeCursor(scopes.users, further, userPositionSchema, 'users_cursor')[0],
  }
}

function toSessionPosition(scope: CursorScope, cursor: string): SessionPosition {
  const [startedAtMs, sessionId] = decodeCursor(
    scope,
    cursor,
    sessionPositionSchema,
    'sessions_cursor',
  )
  return { startedAtMs, sessionId }
}

/** The same as text, which is made while it is sent. */
function streamDevice(device: DeviceHistory, scopes: DeviceScopes, phone: PhoneField): Readable {
  return streamJson(toDeviceFields(device, scopes, phone), {
    users_seen_on: { items: device.users, toItem: (user) => user },
    sessions: { items: device.sessions, toItem: toSession },
  })
}
