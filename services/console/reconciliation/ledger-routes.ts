/** The ledger of a tenant: what every stage did with its events, and where they differ. */
import {
  ledgerQuerySchema,
  ledgerSchema,
  toLedgerSpan,
  toLedgerView,
} from '#shared/core/reconciliation/ledger-api.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { LedgerStore } from '#shared/io/reconciliation/ledger-store.ts'
import type { ConsoleApp } from '../app.ts'
import { problemSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type LedgerRouteDeps = {
  postgres: Postgres
  readLedger: LedgerStore['readLedger']
  wallMs: () => number
}

export function addLedgerRoutes(app: ConsoleApp, deps: LedgerRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/ledger',
    {
      schema: {
        summary: 'What every stage did with a tenant’s events, hour by hour, and where they differ',
        params: tenantParams,
        querystring: ledgerQuerySchema,
        response: { 200: ledgerSchema, default: problemSchema },
      },
    },
    async ({ params, query }) => {
      const tenantId = params.tenant_id
      await requireTenant(deps.postgres, tenantId)
      const span = toLedgerSpan(query, deps.wallMs())
      const ledger = await deps.readLedger({ tenantId, ...span }).catch((error: unknown) => {
        throw unavailable('The ledger cannot be read at the moment.', toLoggable(error))
      })
      return toLedgerView(ledger, span)
    },
  )
}
