/** Counts of a tenant's events by a column, beside the list of the same filter. */
import { z } from 'zod'
import { eventColumns, leavesOut } from '#shared/core/analytics/event-counts.ts'
import { eventCountLimits, eventCountValuesMax } from '#shared/core/base/limits/analytics.ts'
import { eventFilterFields, withSignal } from '#shared/core/http/event-schemas.ts'
import type { EventCountQuery, EventCountStore } from '#shared/io/analytics/event-count-store.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type EventCountDeps = {
  postgres: Postgres
  eventCounts: EventCountStore
  limited: QueryLimiter
}

const countsQuery = withSignal({
  ...eventFilterFields,
  by: z.enum(eventColumns).describe('the column; `signal_value`: the values of `signal`'),
}).refine(({ by, signal }) => by !== 'signal_value' || signal !== undefined, {
  path: ['signal'],
  message: 'says whose values are counted',
})

const count = {
  events: z.number().int(),
  devices: z.number().int().describe('exact to tens of thousands, and within a percent beyond'),
}

const countsSchema = z
  .object({
    by: z.enum(eventColumns),
    all: z.object(count).describe('of all events of the filter'),
    none: z.object(count).describe('of those without a value'),
    values: z
      .array(
        z.object({
          value: z.string(),
          label: z.string().describe('of an operator of networks its name; empty of others'),
          ...count,
        }),
      )
      .describe(`at most ${eventCountValuesMax}, those of most events first`),
    values_total: z.number().int(),
    own_filter_left_out: z
      .boolean()
      .describe('an event has several flags, signals and kinds of network: their own filter'),
  })
  .meta({ id: 'EventCounts' })

/** Adds the route. */
export function addEventCountRoute(app: ConsoleApp, deps: EventCountDeps): void {
  const count = deps.limited('event_counts', eventCountLimits, (query: EventCountQuery) =>
    deps.eventCounts.countEvents(query),
  )
  app.get(
    '/tenants/:tenant_id/events/counts',
    {
      schema: {
        operationId: 'countEvents',
        tags: ['Entities'],
        summary: 'Count the events of a filter, and their devices, by a column',
        description:
          'A count is that of the list of events with the same filter and this value. Risk scores ' +
          'are counted in bands, as `min_score` and `max_score` list them. Counts by flag, signal ' +
          'and kind of network leave out the filter by that column, which the value replaces.',
        params: tenantParams,
        querystring: countsQuery,
        problems: ['query_failed'],
        response: { 200: countsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { by, ...filter } }) => {
      await requireTenant(deps.postgres, tenantId)
      const query = { tenantId, filter, by, limit: eventCountValuesMax }
      const { valuesTotal, ...counts } = await count(query).catch(reject)
      return {
        by,
        ...counts,
        values_total: valuesTotal,
        own_filter_left_out: leavesOut(by, filter),
      }
    },
  )
}

const reject = rejectUnavailable('Events cannot be counted at the moment.')
