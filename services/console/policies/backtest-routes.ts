/** The route of backtests, which streams lines of JSON while a backtest runs. */
import { Readable } from 'node:stream'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import type { BacktestLine, Backtests } from './backtest.ts'
import { backtestLinesSchema, backtestQuery } from './backtest-schemas.ts'
import { readPolicy } from './manage-policies.ts'
import { toDocument } from './policy-routes.ts'
import { policyBody } from './policy-schemas.ts'
import { toJsonLines } from './tenant-runs.ts'

export type BacktestRouteDeps = { postgres: Queryable; backtests: Pick<Backtests, 'start'> }

/** Adds the route. */
export function addBacktestRoutes(app: ConsoleApp, deps: BacktestRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/policy/backtest',
    {
      schema: {
        operationId: 'backtestPolicy',
        tags: ['Policies'],
        summary: 'Run a policy over the stored events',
        description:
          'The body is that of setting the policy. The response is lines of JSON: `{"progress"}` ' +
          'while it runs, then `{"report"}`, or `{"problem"}` when it failed. One backtest runs at a ' +
          'time for a tenant; it ends with the connection.',
        params: tenantParams,
        querystring: backtestQuery,
        body: policyBody,
        problems: ['invalid_policy', 'conflict'],
        response: {
          200: {
            description: 'One line for each step, then the report or a problem.',
            content: { 'application/x-ndjson': { schema: backtestLinesSchema } },
          },
        },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { since }, body, id }, reply) => {
      const policy = readPolicy(toDocument(body))
      await requireTenant(deps.postgres, tenantId)
      const sinceMs = since ?? null
      const running = await deps.backtests.start({ tenantId, policy, sinceMs, requestId: id })
      // Cancel when the client disconnects.
      reply.raw.once('close', running.cancel)
      if (reply.raw.destroyed) running.cancel()
      reply.header('content-type', 'application/x-ndjson; charset=utf-8')
      reply.header('cache-control', 'no-store')
      // Each line is serialized here, not by the schema.
      const lines = Readable.from(toJsonLines(running.lines())) as unknown
      return reply.send(lines as BacktestLine)
    },
  )
}
