/**
 * `GET /v1/di/devices/{device_id}`: everything that is known of a device. Its sessions and its
 * users come up to 10,000 at a time; the next ones follow by cursor. A device with many is read and
 * sent in pieces, a few such answers at a time.
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { pathPartCharactersMax } from '#shared/core/base/limits/http.ts'
import type { SessionHistory, SessionPosition } from '#shared/core/devices/device-history.ts'
import { devicePathSchema, deviceQuerySchema } from '#shared/core/http/api-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { readQuery } from '#shared/core/http/query-string.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import type { DeviceHistory, HistoryStore } from '#shared/io/devices/history-store.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { Guard } from '../http/authenticate.ts'
import { compressed } from '../http/compress-answers.ts'
import { streamJson } from '../http/stream-json.ts'

const sessionPositionSchema = z.tuple([instantMsSchema, idSchema])
const userPositionSchema = z.tuple([idSchema])

export type DeviceRouteDeps = Pick<HistoryStore, 'findSmallDevice' | 'findLargeDevice'> & {
  /** Waits for a place among the large answers; it is free again when the answer has been sent. */
  beginLargeAnswer: (tenantId: string, reply: FastifyReply) => Promise<void>
}

export function addDeviceRoutes(app: FastifyInstance, guard: Guard, deps: DeviceRouteDeps): void {
  const handler = guard(async (call) => {
    const { tenantId, request, reply } = call
    const deviceId = readDeviceId(request.params)
    const query = readQuery(request.url, deviceQuerySchema)
    const scopes: Scopes = {
      sessions: { list: 'sessions', tenantId, filters: [deviceId] },
      users: { list: 'users', tenantId, filters: [deviceId] },
    }
    const question = { tenantId, deviceId, ...toPositions(query, scopes) }
    const small = await deps.findSmallDevice(question).catch(toUnavailable)
    if (small === 'large') {
      await deps.beginLargeAnswer(tenantId, reply)
      const large = requireFound(await deps.findLargeDevice(question).catch(toUnavailable))
      call.chargeRows(large.sessions.length + large.users.length)
      reply.type('application/json; charset=utf-8')
      return writeDevice(large, scopes)
    }
    const device = requireFound(small)
    call.chargeRows(device.sessions.length + device.users.length)
    return toDevice(device, scopes)
  })
  app.get('/v1/di/devices/:device_id', compressed, handler)
  // An id with slashes that a proxy has decoded on the way.
  app.get('/v1/di/devices/*', compressed, handler)
}

const toUnavailable = (error: unknown): never => {
  if (error instanceof Problem) throw error
  throw unavailable('The device history cannot be read at the moment.', toLoggable(error))
}

function requireFound(device: DeviceHistory | null): DeviceHistory {
  if (device !== null) return device
  throw new Problem('device_not_found', 'There is no telemetry of this device.')
}

/** @param params the path's parameters, decoded: the id is a segment, or all that follows */
function readDeviceId(params: unknown): string {
  const { '*': rest } = params as { '*'?: string }
  if (rest !== undefined && rest.length > pathPartCharactersMax) {
    throw new Problem('uri_too_long', 'A part of the address is too long.')
  }
  const parsed = devicePathSchema.safeParse(rest === undefined ? params : { device_id: rest })
  if (parsed.success) return parsed.data.device_id
  throw new Problem('invalid_path', 'This cannot be the id of a device.', {
    errors: [{ path: 'device_id', message: parsed.error.issues[0]?.message ?? 'is not valid' }],
  })
}

type Scopes = Record<'sessions' | 'users', CursorScope>

function toPositions(query: z.infer<typeof deviceQuerySchema>, scopes: Scopes) {
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

const toIso = (ms: number): string => new Date(ms).toISOString()

const toSession = (session: SessionHistory) => ({
  session_id: session.sessionId,
  rasp_action: session.raspAction,
  started_at: toIso(session.startedAtMs),
  last_seen_at: toIso(session.lastSeenAtMs),
  rasp_score: session.raspScore,
  flags: session.flags,
})

/** Everything but the two lists. */
function toDeviceFacts(device: DeviceHistory, { sessions, users }: Scopes): object {
  const { next, nextUser } = device
  return {
    device_id: device.deviceId,
    first_seen_at: toIso(device.firstSeenAtMs),
    last_seen_at: toIso(device.lastSeenAtMs),
    peak_rasp_score: device.peakRaspScore,
    users_cursor: nextUser === null ? null : encodeCursor(users, [nextUser]),
    sessions_total: device.sessionsTotal,
    sessions_cursor: next && encodeCursor(sessions, [next.startedAtMs, next.sessionId]),
  }
}

function toDevice(device: DeviceHistory, scopes: Scopes): object {
  return {
    ...toDeviceFacts(device, scopes),
    users_seen_on: device.users,
    sessions: device.sessions.map(toSession),
  }
}

/** The same as text, made while it is sent. */
function writeDevice(device: DeviceHistory, scopes: Scopes): Readable {
  return streamJson(toDeviceFacts(device, scopes), {
    users_seen_on: { items: device.users, toItem: (user) => user },
    sessions: { items: device.sessions, toItem: toSession },
  })
}
