/** The fleet of a tenant: SDK versions and platforms over time, and signals per version. */
import {
  fleetDaysMax,
  fleetLinesMax,
  fleetSignalsMax,
  fleetVersionsMax,
} from '#shared/core/base/limits/analytics.ts'
import { toInvalidQuery } from '#shared/core/http/query-string.ts'
import type { FleetSpan, FleetStore } from '#shared/io/analytics/fleet-store.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../../http/admin-app.ts'
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
        summary: 'SDK versions, platforms, devices and signals of a tenant over time',
        params: tenantParams,
        querystring: fleetQuery,
        response: { 200: fleetSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(deps.postgres, tenantId)
      const span = toFleetSpan(tenantId, query, deps.wallMs())
      return readFleet(deps.fleet, span).catch((error: unknown) => {
        throw unavailable('The telemetry cannot be read at the moment.', toLoggable(error))
      })
    },
  )
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** @throws Problem invalid_query */
function toFleetSpan(
  tenantId: string,
  query: { from?: number | undefined; to?: number | undefined },
  nowMs: number,
): FleetSpan {
  const toMs = query.to ?? nowMs
  const fromMs = query.from ?? toMs - dayMs
  const longMs = toMs - fromMs
  if (longMs <= 0 || longMs > fleetDaysMax * dayMs) {
    const message = `must be before \`to\`, by at most ${fleetDaysMax} days`
    throw toInvalidQuery([{ path: 'from', message }])
  }
  const stepMs = longMs <= 3 * hourMs ? hourMs / 12 : longMs <= 3 * dayMs ? hourMs : dayMs
  return { tenantId, fromMs, toMs, stepSeconds: stepMs / 1_000 }
}

async function readFleet(store: FleetStore, span: FleetSpan) {
  // Two at a time: each reads the same columns, which the second then finds in memory.
  const [totals, versions] = await Promise.all([
    store.readTotals(span),
    store.listVersions({ ...span, versionsMax: fleetVersionsMax }),
  ])
  const [all, newDevices] = await Promise.all([
    store.listPoints(span, 'all'),
    store.listNewDevices(span),
  ])
  const [byPlatform, byVersion] = await Promise.all([
    store.listPoints(span, 'platform'),
    store.listPoints(span, 'version'),
  ])
  const most = { versionsMax: fleetLinesMax, signalsMax: fleetSignalsMax }
  const signals = await store.listSignals({ ...span, ...most })
  return toFleetBody({ span, totals, versions, all, newDevices, byPlatform, byVersion, signals })
}
