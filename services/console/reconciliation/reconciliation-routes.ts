/** The reconciliation of a tenant: what every stage did with its events, and where they differ. */
import {
  reconciliationQuerySchema,
  reconciliationSchema,
  toReconciliationSpan,
  toReconciliationView,
} from '#shared/core/reconciliation/reconciliation-api.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type ReconciliationRouteDeps = {
  postgres: Postgres
  readReconciliation: ReconciliationStore['readReconciliation']
  wallMs: () => number
}

export function addReconciliationRoutes(app: ConsoleApp, deps: ReconciliationRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/reconciliation',
    {
      schema: {
        summary: 'What every stage did with a tenant’s events, hour by hour, and where they differ',
        params: tenantParams,
        querystring: reconciliationQuerySchema,
        response: { 200: reconciliationSchema },
      },
    },
    async ({ params, query }) => {
      const tenantId = params.tenant_id
      await requireTenant(deps.postgres, tenantId)
      const span = toReconciliationSpan(query, deps.wallMs())
      const reconciliation = await deps
        .readReconciliation({ tenantId, ...span })
        .catch((error: unknown) => {
          throw unavailable('Reconciliation cannot be read at the moment.', toLoggable(error))
        })
      return toReconciliationView(reconciliation, span)
    },
  )
}
