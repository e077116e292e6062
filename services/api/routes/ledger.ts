/**
 * `GET /v1/di/ledger`: what every stage did with the tenant's events, hour by hour, and where they
 * differ.
 */
import type { FastifyInstance } from 'fastify'
import { Problem } from '#shared/core/http/problem.ts'
import { readQuery } from '#shared/core/http/query-string.ts'
import {
  ledgerQuerySchema,
  toLedgerSpan,
  toLedgerView,
} from '#shared/core/reconciliation/ledger-api.ts'
import { toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { unavailable } from '#shared/io/http/http-server.ts'
import type { LedgerStore } from '#shared/io/reconciliation/ledger-store.ts'
import type { Guard } from '../http/authenticate.ts'

export function addLedgerRoutes(
  app: FastifyInstance,
  guard: Guard,
  { readLedger, nowMs }: Pick<LedgerStore, 'readLedger'> & { nowMs: () => number },
): void {
  app.get(
    '/v1/di/ledger',
    guard(async ({ tenantId, request }) => {
      const span = toLedgerSpan(readQuery(request.url, ledgerQuerySchema), nowMs())
      const ledger = await readLedger({ tenantId, ...span }).catch((error: unknown) => {
        if (error instanceof Problem) throw error
        throw unavailable('The ledger cannot be read at the moment.', toLoggable(error))
      })
      return toLedgerView(ledger, span)
    }),
  )
}
