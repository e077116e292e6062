/** The list of a tenant's events, as people look through them; the tenant's API has the same. */
import { phoneReadLimits } from '#shared/core/base/limits/entities.ts'
import { eventListLimits } from '#shared/core/base/limits/rest-api.ts'
import { toEventCursor, toEventPosition, toEventScope } from '#shared/core/http/event-cursors.ts'
import { eventPageSchema, eventsQuerySchema } from '#shared/core/http/event-schemas.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { PhoneStore } from '#shared/io/identity/phone-store.ts'
import { readPhoneFields } from '#shared/io/identity/read-phone-fields.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { toEvent } from '#shared/io/telemetry/decided-event.ts'
import type { EventListQuery, EventListStore } from '#shared/io/telemetry/event-list-store.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type EventListDeps = {
  postgres: Postgres
  eventList: EventListStore
  phones: Pick<PhoneStore, 'findPhonesOfDevices'>
  limited: QueryLimiter
}

type PhonesQuery = Parameters<PhoneStore['findPhonesOfDevices']>[0]

/** Adds the route. */
export function addEventListRoute(app: ConsoleApp, deps: EventListDeps): void {
  const list = deps.limited('events', eventListLimits, (query: EventListQuery) =>
    deps.eventList.listEvents(query),
  )
  const findPhones = deps.limited('device_phones', phoneReadLimits, (query: PhonesQuery) =>
    deps.phones.findPhonesOfDevices(query),
  )
  app.get(
    '/tenants/:tenant_id/events',
    {
      schema: {
        operationId: 'listEvents',
        tags: ['Entities'],
        summary: 'List and filter events with what was decided, newest first',
        params: tenantParams,
        querystring: eventsQuerySchema,
        problems: ['query_failed'],
        response: { 200: eventPageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(deps.postgres, tenantId)
      const { limit, cursor, ...filter } = query
      const scope = toEventScope(tenantId, filter)
      const after = cursor === undefined ? null : toEventPosition(scope, cursor)
      const { events, next } = await list({ tenantId, filter, limit, after }).catch(reject)
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

const reject = rejectUnavailable('Events cannot be read at the moment.')
