/** The route of a tenant's reconciliation: the counts of each stage, and the differences. */
import {
  reconciliationQuerySchema,
  reconciliationSchema,
  toReconciliationSpan,
  toReconciliationView,
} from '#shared/core/reconciliation/reconciliation-api.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
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

/** Adds the route. */
export function addReconciliationRoutes(app: ConsoleApp, deps: ReconciliationRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/reconciliation',
    {
      schema: {
        operationId: 'findReconciliation',
        tags: ['Analytics'],
        summary: 'What each stage counted of a tenant’s events, hour by hour, and the differences',
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
        .catch(rejectUnavailable('Reconciliation cannot be read at the moment.'))
      return toReconciliationView(reconciliation, span)
    },
  )
}
