/** The tenant's events: the list with its filters, and one event, each with what was decided. */
import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import { eventsPageDefault } from '#shared/core/base/limits/rest-api.ts'
import {
  eventPageSchema,
  eventPathSchema,
  eventSchema,
  eventsQuerySchema,
} from '#shared/core/http/event-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { EventPosition } from '#shared/core/telemetry/event-filters.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { type FindPhones, readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import type { DecidedEvent } from '#shared/io/telemetry/decided-event.ts'
import type { EventListStore } from '#shared/io/telemetry/event-list-store.ts'
import type { EventStore } from '#shared/io/telemetry/event-store.ts'
import { compressed } from '../http/compress-responses.ts'
import { eventExample } from '../openapi/examples.ts'

export type EventRouteDeps = Pick<EventStore, 'findDecidedEvent'> &
  EventListStore & { findPhones: FindPhones }

/** Adds the routes. */
export function addEventRoutes(app: ZodApp, deps: EventRouteDeps): void {
  addList(app, deps)
  app.get(
    '/v1/di/events/:event_id',
    {
      schema: {
        operationId: 'findEvent',
        conditional: true,
        tags: ['Events'],
        summary: 'One accepted event and why it was decided so',
        description: 'An accepted event is visible here within a second.',
        params: eventPathSchema,
        querystring: z.strictObject({}),
        problems: ['event_not_found'],
        response: { 200: eventSchema },
        example: eventExample,
      },
    },
    async ({ params, caller: { tenantId } }) => {
      const event = await deps
        .findDecidedEvent({ tenantId, eventId: params.event_id })
        .catch(reject)
      if (event !== null) {
        const wanted = { tenantId, deviceIds: [event.deviceId] }
        const toPhoneField = await readPhoneFields(deps.findPhones, wanted)
        return { ...toEvent(event), ...toPhoneField(event.deviceId) }
      }
      throw new Problem(
        'event_not_found',
        'There is no such event, or not yet. Ids of events begin with evt_.',
      )
    },
  )
}

const reject = rejectUnavailable('Events cannot be read at the moment.')

/** The end of a search that stopped early has no event. */
const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^[A-Za-z0-9_-]{0,64}$/)])

function addList(app: ZodApp, { listEvents, findPhones }: EventRouteDeps): void {
  app.get(
    '/v1/di/events',
    {
      ...compressed,
      schema: {
        operationId: 'listEvents',
        tags: ['Events'],
        summary: 'List and filter events',
        description:
          'Newest first, each once, with what was decided. `action`, `flag` and `min_score` compare the decision. There is no total. Every 50 events of a page count as one call of the tenant’s rate. An unknown parameter, a repeated one or a bad value is a 400 that names it. A search without `device_id`, `user_id` or `session_id` reads the times of all events of the period: name `from` where it is known.',
        querystring: eventsQuerySchema,
        problems: ['query_failed'],
        response: { 200: eventPageSchema },
        example: { data: [eventExample], limit: eventsPageDefault, next_cursor: null },
      },
    },
    async ({ query, caller: { tenantId, chargeRows } }) => {
      const { limit, cursor, ...filter } = query
      // By name and only what is given, so a cursor outlives releases that add filters.
      const given = Object.entries(filter).filter(([, value]) => value !== undefined)
      const filters = given.sort(([a], [b]) => (a < b ? -1 : 1))
      const scope: CursorScope = { list: 'events', tenantId, filters }
      const after = cursor === undefined ? null : toPosition(scope, cursor)
      const { events, next } = await listEvents({ tenantId, filter, limit, after }).catch(reject)
      chargeRows(events.length)
      const deviceIds = events.map(({ deviceId }) => deviceId)
      const toPhoneField = await readPhoneFields(findPhones, { tenantId, deviceIds })
      return {
        data: events.map((event) => ({ ...toEvent(event), ...toPhoneField(event.deviceId) })),
        limit,
        next_cursor: next && encodeCursor(scope, [next.receivedAtMs, next.eventId]),
      }
    },
  )
}

function toPosition(scope: CursorScope, cursor: string): EventPosition {
  const [receivedAtMs, eventId] = decodeCursor(scope, cursor, positionSchema)
  return { receivedAtMs, eventId }
}

function toEvent(event: DecidedEvent) {
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
