/**
 * `GET /v1/di/users/{user_id}`: the history of a user or account. A response has up to 10,000
 * devices, most recent first; a cursor continues.
 */
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import { rowsPerCall } from '#shared/core/base/limits/rest-api.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  type UserQuery,
  userPathSchema,
  userQuerySchema,
  userSchema,
} from '#shared/core/http/reading-schemas.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { UserDevice, UserStore } from '#shared/io/devices/user-store.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { type FindPhones, readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import type { Caller } from '../http/authenticate.ts'
import { compressed } from '../http/compress-responses.ts'
import { streamJson } from '../http/stream-json.ts'
import { userExample } from '../openapi/examples.ts'
import { decodedPath, requireShortPath } from './decoded-path.ts'

const positionSchema = z.tuple([instantMsSchema, idSchema])

/** Devices in a response that is sent in pieces, with a permit for large responses. */
const largeFrom = 20 * rowsPerCall

export type UserRouteDeps = UserStore & {
  findPhones: FindPhones
  /** Waits for a permit for a large response. The permit ends with the response. */
  beginLargeResponse: (tenantId: string, reply: FastifyReply) => Promise<void>
}

type UserRequest = { params: { user_id: string }; query: UserQuery; caller: Caller }

/** Adds the route, also for ids whose slashes a proxy has decoded. */
export function addUserRoutes(app: ZodApp, deps: UserRouteDeps): void {
  const handler = async ({ params, query, caller }: UserRequest, reply: FastifyReply) => {
    const { tenantId, chargeRows } = caller
    const userId = params.user_id
    const scope: CursorScope = { list: 'user-devices', tenantId, filters: [userId] }
    const { devices_limit: limit, devices_cursor: cursor } = query
    const after = cursor === undefined ? null : toPosition(scope, cursor)
    const totals = await deps.findUserTotals({ tenantId, userId }).catch(reject)
    if (totals === null) {
      throw new Problem(
        'user_not_found',
        'There is no telemetry of this user or account, or not yet. Its id is everything after /v1/di/users/.',
      )
    }
    if (Math.min(totals.devices, limit) >= largeFrom) await deps.beginLargeResponse(tenantId, reply)
    const found = await deps
      .listUserDevices({ tenantId, userId, limit: limit + 1, after })
      .catch(reject)
    const devices = found.slice(0, limit)
    chargeRows(devices.length)
    const last = found.length > limit ? devices.at(-1) : undefined
    const deviceIds = devices.map((device) => device.deviceId)
    const toPhoneField = await readPhoneFields(deps.findPhones, { tenantId, deviceIds })
    const toItem = (device: UserDevice) => ({
      ...toDevice(device),
      ...toPhoneField(device.deviceId),
    })
    const fields = {
      user_id: userId,
      first_seen_at: toIso(totals.firstSeenAtMs),
      last_seen_at: toIso(totals.lastSeenAtMs),
      peak_rasp_score: totals.peakRaspScore,
      risk_score: totals.peakRiskScore,
      devices_total: totals.devices,
      devices_cursor: last ? encodeCursor(scope, [last.lastSeenAtMs, last.deviceId]) : null,
    }
    reply.type('application/json; charset=utf-8')
    return devices.length < largeFrom
      ? { ...fields, devices: devices.map(toItem) }
      : streamJson(fields, { devices: { items: devices, toItem } })
  }
  app.get(
    '/v1/di/users/:user_id',
    {
      ...compressed,
      schema: {
        operationId: 'findUser',
        conditional: true,
        tags: ['Users'],
        summary: 'The devices of one user or account',
        description:
          'An accepted event is visible here within a second. One response has up to 10,000 devices. Every 50 of them count as one call of the tenant’s rate. A device that is seen again during a walk moves to the front, so the rest of the walk leaves it out: read the first page again to find it.',
        params: userPathSchema,
        querystring: userQuerySchema,
        problems: ['user_not_found'],
        response: { 200: userSchema },
        example: userExample,
      },
    },
    handler as never,
  )
  app.get(
    '/v1/di/users/*',
    {
      ...compressed,
      preValidation: requireShortPath,
      schema: {
        hide: true,
        conditional: true,
        params: decodedPath('user_id', userPathSchema),
        querystring: userQuerySchema,
      },
    },
    handler as never,
  )
}

const reject = rejectUnavailable('The user history cannot be read at the moment.')

function toPosition(scope: CursorScope, cursor: string) {
  const [lastSeenAtMs, deviceId] = decodeCursor(scope, cursor, positionSchema, 'devices_cursor')
  return { lastSeenAtMs, deviceId }
}

const toDevice = (device: UserDevice) => ({
  device_id: device.deviceId,
  first_seen_at: toIso(device.firstSeenAtMs),
  last_seen_at: toIso(device.lastSeenAtMs),
  peak_rasp_score: device.peakRaspScore,
  risk_score: device.peakRiskScore,
})
