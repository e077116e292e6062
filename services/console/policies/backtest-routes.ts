/** Backtests of a tenant's policy, answered line by line while they run. */
import { Readable } from 'node:stream'
import { parseInstant } from '#shared/core/base/instants.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import type { BacktestLine, Backtests } from './backtest.ts'
import { backtestLinesSchema, backtestQuery } from './backtest-schemas.ts'
import { readPolicy } from './manage-policies.ts'
import { toDocument } from './policy-routes.ts'
import { policyBody } from './policy-schemas.ts'

export type BacktestRouteDeps = { postgres: Queryable; backtests: Pick<Backtests, 'start'> }

export function addBacktestRoutes(app: ConsoleApp, deps: BacktestRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/policy/backtest',
    {
      schema: {
        summary: 'What a policy would have done with the stored events',
        description:
          'The body is as for setting the policy, and checked alike. The answer is lines of JSON: ' +
          '`{"progress"}` while it runs, then `{"report"}`, or `{"problem"}` when it broke off. ' +
          'One runs at a time for a tenant; it ends when the connection does.',
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
      const sinceMs = since === undefined ? null : parseInstant(since)
      const running = await deps.backtests.start({ tenantId, policy, sinceMs, requestId: id })
      // The reader of the lines is gone when its connection closes.
      reply.raw.once('close', running.cancel)
      if (reply.raw.destroyed) running.cancel()
      reply.header('content-type', 'application/x-ndjson; charset=utf-8')
      reply.header('cache-control', 'no-store')
      // Lines are no answer to be written by the schema: each is serialised here.
      const lines = Readable.from(toTexts(running.lines())) as unknown
      return reply.send(lines as BacktestLine)
    },
  )
}

async function* toTexts(lines: AsyncIterable<BacktestLine>): AsyncGenerator<string, void> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`
}
