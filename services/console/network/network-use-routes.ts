/** Which devices share the network of one, and from which countries and networks a fleet comes. */
import { z } from 'zod'
import { toIso } from '#shared/core/base/instants.ts'
import { fleetDaysMax } from '#shared/core/base/limits/analytics.ts'
import {
  fleetNetworksMax,
  networkDevicesMax,
  networkReadLimits,
} from '#shared/core/base/limits/entities.ts'
import { riskSchema } from '#shared/core/http/field-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { connectionSchema } from '#shared/core/network/connection-answer.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { NetworkStore } from '#shared/io/devices/network-store.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { fleetQuery } from '../analytics/fleet/fleet-schemas.ts'
import { deviceParams } from '../entities/entity-schemas.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { toQuerySpan } from '../http/query-span.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type NetworkUseDeps = {
  postgres: Postgres
  networks: NetworkStore
  limited: QueryLimiter
  wallMs: () => number
}

type DevicesQuery = Parameters<NetworkStore['findNetworkDevices']>[0]
type FleetQuery = Parameters<NetworkStore['readFleetNetworks']>[0]

const reject = rejectUnavailable('The networks cannot be read at the moment.')

const networkDevicesSchema = z.object({
  connection: connectionSchema
    .nullable()
    .describe('the latest measured connection of the device; null when it has none'),
  data: z
    .array(
      z.object({
        device_id: z.string(),
        last_seen_at: z.string(),
        risk_score: riskSchema.describe('the highest of its events'),
        on_network_at: z.string().describe('its latest measured event'),
      }),
    )
    .describe(
      `other devices whose latest measured event came from the same network, those seen latest first, at most ${networkDevicesMax}`,
    ),
  total: z.int().describe('how many there are'),
})

const counts = {
  events: z.int(),
  blocked: z.int().describe('events whose own score led to BLOCK'),
  devices: z.int(),
}

const fleetNetworksSchema = z.object({
  from: z.string(),
  to: z.string(),
  events: z.int(),
  measured: z.int().describe('events with a measured connection'),
  countries: z
    .array(z.object({ country: z.string(), networks: z.int(), ...counts }))
    .describe(`most devices first, at most ${fleetNetworksMax}`),
  networks: z
    .array(z.object({ connection: connectionSchema, ...counts }))
    .describe(`most devices first, at most ${fleetNetworksMax}`),
})

/** Adds the routes. */
export function addNetworkUseRoutes(app: ConsoleApp, deps: NetworkUseDeps): void {
  const { postgres, networks, limited } = deps
  const findDevices = limited('networks', networkReadLimits, (query: DevicesQuery) =>
    networks.findNetworkDevices(query),
  )
  const readFleet = limited('networks', networkReadLimits, (query: FleetQuery) =>
    networks.readFleetNetworks(query),
  )
  app.get(
    '/tenants/:tenant_id/devices/:device_id/network',
    {
      schema: {
        operationId: 'listNetworkDevices',
        tags: ['Entities'],
        summary: 'Other devices on the network that a device was last on',
        params: deviceParams,
        problems: ['device_not_found'],
        response: { 200: networkDevicesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, device_id: deviceId } }) => {
      await requireTenant(postgres, tenantId)
      const query = { tenantId, deviceId, limit: networkDevicesMax }
      const found = await findDevices(query).catch(reject)
      if (found === null) {
        throw new Problem('device_not_found', 'There is no telemetry of this device.')
      }
      return {
        connection: found.connection,
        data: found.devices.map((one) => ({
          device_id: one.deviceId,
          last_seen_at: toIso(one.lastSeenAtMs),
          risk_score: one.peakRiskScore,
          on_network_at: toIso(one.connectedAtMs),
        })),
        total: found.total,
      }
    },
  )
  app.get(
    '/tenants/:tenant_id/fleet/networks',
    {
      schema: {
        operationId: 'findFleetNetworks',
        tags: ['Analytics'],
        summary: 'From which countries and networks the events of a tenant come',
        params: tenantParams,
        querystring: fleetQuery,
        response: { 200: fleetNetworksSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(postgres, tenantId)
      const span = toQuerySpan(query, { nowMs: deps.wallMs(), daysMax: fleetDaysMax })
      const limit = fleetNetworksMax
      const found = await readFleet({ tenantId, ...span, limit }).catch(reject)
      return { from: toIso(span.fromMs), to: toIso(span.toMs), ...found }
    },
  )
}
