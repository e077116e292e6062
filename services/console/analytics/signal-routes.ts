/** Routes of the signal catalog with a tenant's weights, and of unknown signals that SDKs send. */
import { signalPathsPerTenantMax } from '#shared/core/base/limits/telemetry.ts'
import { signalListSchema, toSignalList } from '#shared/core/signals/signal-list.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { freeSignalNames, readFreedNames } from '#shared/io/telemetry/signal-names-store.ts'
import type { UnknownSignalStore } from '#shared/io/telemetry/unknown-signal-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { tenantNotFound } from '../tenants/directory.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  freedNamesSchema,
  listUnknownSignalsQuery,
  unknownSignalsSchema,
} from './signal-schemas.ts'

export type SignalRouteDeps = {
  postgres: Postgres
  countRecentNames: UnknownSignalStore['countRecentNames']
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
      const freed = await readFreedNames(deps.postgres, [tenantId])
      const [data, leftOut, recent] = await Promise.all([
        deps.listUnknownSignals({ tenantId, days, limit }),
        deps.countLeftOut({ tenantId, days }),
        deps.countRecentNames(tenantId),
      ]).catch(rejectUnavailable('The telemetry cannot be read at the moment.'))
      const names = {
        in_last_hour: recent,
        limit: signalPathsPerTenantMax,
        freed_at: freed.get(tenantId) ?? null,
      }
      return { days, left_out: leftOut, names, data }
    },
  )
  app.post(
    '/tenants/:tenant_id/unknown-signals/free',
    {
      schema: {
        operationId: 'freeSignalNames',
        tags: ['Analytics'],
        summary: 'Free the names of unknown signals that became columns, for others',
        params: tenantParams,
        response: { 200: freedNamesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, principal }) =>
      deps.postgres.transaction(async (tx) => {
        const before = await readFreedNames(tx, [tenantId])
        const freedAt = await freeSignalNames(tx, tenantId)
        if (freedAt === null) throw tenantNotFound(tenantId)
        await insertAudit(tx, {
          actor: actorOf(principal),
          tenantId,
          action: 'signal_names.freed',
          before: { freed_at: before.get(tenantId) ?? null },
          after: { freed_at: freedAt },
        })
        return { tenant_id: tenantId, freed_at: freedAt }
      }),
  )
}
