/** The tenant's events: the list with its filters, and one event, each with what was decided. */
import { z } from 'zod'
import { eventsPageDefault } from '#shared/core/base/limits/rest-api.ts'
import { toEventCursor, toEventPosition, toEventScope } from '#shared/core/http/event-cursors.ts'
import {
  eventPageSchema,
  eventPathSchema,
  eventSchema,
  eventsQuerySchema,
} from '#shared/core/http/event-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { describeUnknownPath } from '#shared/core/telemetry/signal-warnings.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { type FindPhones, readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import type { CurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { toEvent } from '#shared/io/telemetry/decided-event.ts'
import type { EventListStore } from '#shared/io/telemetry/event-list-store.ts'
import type { EventStore } from '#shared/io/telemetry/event-store.ts'
import { compressed } from '../http/compress-responses.ts'
import { eventExample } from '../openapi/examples.ts'

export type EventRouteDeps = Pick<EventStore, 'findDecidedEvent'> &
  EventListStore &
  CurrentPolicyStore & { findPhones: FindPhones }

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

function addList(app: ZodApp, deps: EventRouteDeps): void {
  const { listEvents, findPhones } = deps
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
      const scope = toEventScope(tenantId, filter)
      const after = cursor === undefined ? null : toEventPosition(scope, cursor)
      const { events, next } = await listEvents({ tenantId, filter, limit, after }).catch(reject)
      if (events.length === 0 && next === null && after === null) {
        await requireKnownSignal(deps, tenantId, filter.signal)
      }
      chargeRows(events.length)
      const deviceIds = events.map(({ deviceId }) => deviceId)
      const toPhoneField = await readPhoneFields(findPhones, { tenantId, deviceIds })
      return {
        data: events.map((event) => ({ ...toEvent(event), ...toPhoneField(event.deviceId) })),
        limit,
        next_cursor: next && toEventCursor(scope, next),
      }
    },
  )
}

/**
 * A name that is in no event is a slip, unless the catalog or the tenant's policy has it.
 * @throws Problem invalid_query with the nearest name
 */
async function requireKnownSignal(
  { findCurrentPolicy }: CurrentPolicyStore,
  tenantId: string,
  signal: string | undefined,
): Promise<void> {
  const message = signal === undefined ? null : describeUnknownPath(signal)
  if (message === null) return
  const current = await findCurrentPolicy(tenantId)
  if (Object.hasOwn(current?.policy.signals ?? {}, signal!)) return
  throw new Problem('invalid_query', 'No event has this signal.', {
    errors: [{ path: 'signal', message }],
  })
}
