/**
 * `GET /v1/di/ledger`: the reconciliation. What each stage counted of the tenant's events, hour by
 * hour, and the differences.
 */
import {
  reconciliationQuerySchema,
  reconciliationSchema,
  toReconciliationSpan,
  toReconciliationView,
} from '#shared/core/reconciliation/reconciliation-api.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { reconciliationExample } from '../openapi/examples.ts'

export type ReconciliationRouteDeps = Pick<ReconciliationStore, 'readReconciliation'> & {
  /** The wall clock. */
  nowMs: () => number
}

/** Adds the route. */
export function addReconciliationRoutes(
  app: ZodApp,
  { readReconciliation, nowMs }: ReconciliationRouteDeps,
): void {
  app.get(
    '/v1/di/ledger',
    {
      schema: {
        operationId: 'readLedger',
        tags: ['Ledger'],
        summary: 'What each stage counted of the tenant’s events, hour by hour',
        description:
          'At every stage an event belongs to the hour in which an edge received it. Where stages differ, the stage, the number and some ids are named. Events in flight are not differences.',
        querystring: reconciliationQuerySchema,
        response: { 200: reconciliationSchema },
        example: reconciliationExample,
      },
    },
    async ({ query, caller: { tenantId } }) => {
      const span = toReconciliationSpan(query, nowMs())
      const reconciliation = await readReconciliation({ tenantId, ...span }).catch(
        rejectUnavailable('Reconciliation cannot be read at the moment.'),
      )
      return toReconciliationView(reconciliation, span)
    },
  )
}
