/** Routes of the signal catalog with a tenant's weights, and of unknown signals that SDKs send. */
import { signalListSchema, toSignalList } from '#shared/core/signals/signal-list.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { UnknownSignalStore } from '#shared/io/telemetry/unknown-signal-store.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { tenantNotFound } from '../tenants/directory.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { listUnknownSignalsQuery, unknownSignalsSchema } from './signal-schemas.ts'

export type SignalRouteDeps = {
  postgres: Queryable
  listUnknownSignals: UnknownSignalStore['listUnknownSignals']
  countLeftOut: UnknownSignalStore['countLeftOut']
  /** The wall clock. */
  wallMs: () => number
}

/** Adds the routes. */
export function addSignalRoutes(app: ConsoleApp, deps: SignalRouteDeps): void {
  const policies = createCurrentPolicyStore(deps.postgres)
  app.get(
    '/tenants/:tenant_id/signals',
    {
      schema: {
        operationId: 'listSignals',
        tags: ['Analytics'],
        summary: 'The signal catalog with the weights of a tenant',
        params: tenantParams,
        response: { 200: signalListSchema },
      },
    },
    async ({ params }) => {
      const current = await policies.findCurrentPolicy(params.tenant_id)
      if (current === null) throw tenantNotFound(params.tenant_id)
      return toSignalList(current, deps.wallMs())
    },
  )
  app.get(
    '/tenants/:tenant_id/unknown-signals',
    {
      schema: {
        operationId: 'listUnknownSignals',
        tags: ['Analytics'],
        summary: 'Signals of a tenant’s SDKs that are not in the catalog, most events first',
        params: tenantParams,
        querystring: listUnknownSignalsQuery,
        response: { 200: unknownSignalsSchema },
      },
    },
    async ({ params, query: { days, limit } }) => {
      const tenantId = params.tenant_id
      await requireTenant(deps.postgres, tenantId)
      const [data, leftOut] = await Promise.all([
        deps.listUnknownSignals({ tenantId, days, limit }),
        deps.countLeftOut({ tenantId, days }),
      ]).catch(rejectUnavailable('The telemetry cannot be read at the moment.'))
      return { days, left_out: leftOut, data }
    },
  )
}
