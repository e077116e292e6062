/** The fleet of a tenant: SDK versions and platforms over time, and signals per version. */

import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
import {
  fleetDaysMax,
  fleetLinesMax,
  fleetSignalsMax,
  fleetVersionsMax,
} from '#shared/core/base/limits/analytics.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import type { FleetSpan, FleetStore } from '#shared/io/analytics/fleet-store.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../../http/admin-app.ts'
import { toQuerySpan } from '../../http/query-span.ts'
import { tenantParams } from '../../http/schemas.ts'
import { requireTenant } from '../../tenants/manage-tenants.ts'
import { fleetQuery, fleetSchema } from './fleet-schemas.ts'
import { toFleetBody } from './fleet-view.ts'

export type FleetRouteDeps = { postgres: Queryable; fleet: FleetStore; wallMs: () => number }

export function addFleetRoutes(app: ConsoleApp, deps: FleetRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/fleet',
    {
      schema: {
        operationId: 'findFleet',
        tags: ['Analytics'],
        summary: 'SDK versions, platforms, devices and signals of a tenant over time',
        params: tenantParams,
        querystring: fleetQuery,
        response: { 200: fleetSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(deps.postgres, tenantId)
      const span = toQuerySpan(query, { nowMs: deps.wallMs(), daysMax: fleetDaysMax })
      const stepSeconds = toStepMs(span) / 1_000
      return readFleet(deps.fleet, { tenantId, ...span, stepSeconds }).catch((error: unknown) => {
        throw unavailable('The telemetry cannot be read at the moment.', toLoggable(error))
      })
    },
  )
}

/** Five minutes in up to three hours, an hour in up to three days, a day in more. */
function toStepMs({ fromMs, toMs }: Span): number {
  if (toMs - fromMs <= 3 * hourMs) return hourMs / 12
  return toMs - fromMs <= 3 * dayMs ? hourMs : dayMs
}

async function readFleet(store: FleetStore, span: FleetSpan) {
  const [{ versions, ...counts }, newDevices] = await Promise.all([
    store.readCounts(span),
    store.listNewDevices(span),
  ])
  // After it: it reads the same columns, which it then finds in memory.
  const signals = await store.listSignals({
    ...span,
    versions: versions.slice(0, fleetLinesMax),
    signalsMax: fleetSignalsMax,
  })
  return toFleetBody({
    ...counts,
    span,
    versions: versions.slice(0, fleetVersionsMax),
    newDevices,
    signals,
  })
}
