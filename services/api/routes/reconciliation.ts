/**
 * `GET /v1/di/ledger`: what every stage did with the tenant's events, hour by hour, and where they
 * differ.
 */
import type { FastifyInstance } from 'fastify'
import { Problem } from '#shared/core/http/problem.ts'
import { readQuery } from '#shared/core/http/query-string.ts'
import {
  reconciliationQuerySchema,
  toReconciliationSpan,
  toReconciliationView,
} from '#shared/core/reconciliation/reconciliation-api.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import type { Guard } from '../http/authenticate.ts'

export function addReconciliationRoutes(
  app: FastifyInstance,
  guard: Guard,
  {
    readReconciliation,
    nowMs,
  }: Pick<ReconciliationStore, 'readReconciliation'> & { nowMs: () => number },
): void {
  app.get(
    '/v1/di/ledger',
    guard(async ({ tenantId, request }) => {
      const span = toReconciliationSpan(readQuery(request.url, reconciliationQuerySchema), nowMs())
      const reconciliation = await readReconciliation({ tenantId, ...span }).catch(
        (error: unknown) => {
          if (error instanceof Problem) throw error
          throw unavailable('Reconciliation cannot be read at the moment.', toLoggable(error))
        },
      )
      return toReconciliationView(reconciliation, span)
    }),
  )
}
