/** The route of suggested policies, which streams lines of JSON while one is made. */
import { Readable } from 'node:stream'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { suggestionLinesSchema, suggestionQuery } from './suggestion-schemas.ts'
import type { SuggestionLine, Suggestions } from './suggestions.ts'
import { toJsonLines } from './tenant-runs.ts'

export type SuggestionRouteDeps = { postgres: Queryable; suggestions: Pick<Suggestions, 'start'> }

/** Adds the route. */
export function addSuggestionRoutes(app: ConsoleApp, deps: SuggestionRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/policy/suggestion',
    {
      schema: {
        operationId: 'suggestPolicy',
        tags: ['Policies'],
        summary: 'Suggest a policy from outcomes',
        description:
          'Learns weights from the older labelled sessions and tests them on the newer ones, ' +
          'beside the active policy. The response is lines of JSON: `{"progress"}` while it runs, ' +
          'then `{"report"}`, or `{"problem"}` when it failed. It is refused below 100 sessions ' +
          'of fraud or 100 legitimate ones. The suggestion is a draft: nothing sets it.',
        params: tenantParams,
        querystring: suggestionQuery,
        problems: ['conflict'],
        response: {
          200: {
            description: 'One line for each step, then the report or a problem.',
            content: { 'application/x-ndjson': { schema: suggestionLinesSchema } },
          },
        },
      },
    },
    async ({ params: { tenant_id: tenantId }, query, id }, reply) => {
      await requireTenant(deps.postgres, tenantId)
      const { days, seed } = query
      const freed = { caps: query.caps === 'true', floors: query.floors === 'true' }
      const request = { tenantId, days, options: { freed, seed }, requestId: id }
      const running = await deps.suggestions.start(request)
      // Cancel when the client disconnects.
      reply.raw.once('close', running.cancel)
      if (reply.raw.destroyed) running.cancel()
      reply.header('content-type', 'application/x-ndjson; charset=utf-8')
      reply.header('cache-control', 'no-store')
      // Each line is serialized here, not by the schema.
      const lines = Readable.from(toJsonLines(running.lines())) as unknown
      return reply.send(lines as SuggestionLine)
    },
  )
}
