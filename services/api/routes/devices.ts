/**
 * `GET /v1/di/devices/{device_id}`: everything that is known of a device. Its sessions come up to
 * 10,000 at a time; older ones follow by cursor.
 */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { devicePathSchema, deviceQuerySchema } from '#shared/core/api-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/pagination.ts'
import { Problem } from '#shared/core/problem.ts'
import { readQuery } from '#shared/core/query-string.ts'
import { idSchema } from '#shared/core/telemetry.ts'
import { toLoggable } from '#shared/io/clickhouse.ts'
import type { DeviceHistory, HistoryStore } from '#shared/io/history-store.ts'
import { unavailable } from '#shared/io/http-server.ts'
import type { Guard } from '../authenticate.ts'

const positionSchema = z.tuple([instantMsSchema, idSchema])

export function addDeviceRoutes(
  app: FastifyInstance,
  guard: Guard,
  { findDevice }: Pick<HistoryStore, 'findDevice'>,
): void {
  app.get(
    '/v1/di/devices/:device_id',
    guard(async ({ tenantId, request }) => {
      const deviceId = readDeviceId(request.params)
      const query = readQuery(request.url, deviceQuerySchema)
      const scope: CursorScope = { list: 'sessions', tenantId, filters: [deviceId] }
      const cursor = query.sessions_cursor
      const device = await findDevice({
        tenantId,
        deviceId,
        sessionsLimit: query.sessions_limit,
        before: cursor === undefined ? null : toPosition(scope, cursor),
      }).catch((error: unknown) => {
        if (error instanceof Problem) throw error
        throw unavailable('The device history cannot be read at the moment.', toLoggable(error))
      })
      if (device === null) {
        throw new Problem('device_not_found', 'There is no telemetry of this device.')
      }
      return toDevice(device, scope)
    }),
  )
}

/** @param params the path's parameters, decoded */
function readDeviceId(params: unknown): string {
  const parsed = devicePathSchema.safeParse(params)
  if (parsed.success) return parsed.data.device_id
  throw new Problem('invalid_path', 'This cannot be the id of a device.', {
    errors: [{ path: 'device_id', message: parsed.error.issues[0]?.message ?? 'is not valid' }],
  })
}

function toPosition(scope: CursorScope, cursor: string) {
  const [startedAtMs, sessionId] = decodeCursor(scope, cursor, positionSchema, 'sessions_cursor')
  return { startedAtMs, sessionId }
}

const toIso = (ms: number): string => new Date(ms).toISOString()

function toDevice(device: DeviceHistory, scope: CursorScope): object {
  const { next } = device
  return {
    device_id: device.deviceId,
    first_seen_at: toIso(device.firstSeenAtMs),
    last_seen_at: toIso(device.lastSeenAtMs),
    peak_rasp_score: device.peakRaspScore,
    users_seen_on: device.users,
    sessions: device.sessions.map((session) => ({
      session_id: session.sessionId,
      rasp_action: session.raspAction,
      started_at: toIso(session.startedAtMs),
      last_seen_at: toIso(session.lastSeenAtMs),
      rasp_score: session.raspScore,
      flags: session.flags,
    })),
    sessions_total: device.sessionsTotal,
    sessions_cursor: next && encodeCursor(scope, [next.startedAtMs, next.sessionId]),
  }
}
