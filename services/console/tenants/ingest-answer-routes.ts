/** The route that sets what the clients of a tenant are answered. */
import { z } from 'zod'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { ingestAnswerSchema, tenantParams } from '../http/schemas.ts'
import { changeSetting, type ManageDeps } from './manage-tenants.ts'

/** Adds the route. */
export function addIngestAnswerRoute(app: ConsoleApp, deps: ManageDeps): void {
  app.put(
    '/tenants/:tenant_id/ingest-answer',
    {
      schema: {
        operationId: 'setIngestAnswer',
        tags: ['Tenants'],
        summary: 'Set what a 200 of ingest tells the client; returns once every edge does',
        description:
          'With `interface` a phone learns no flags: it gets `status`, `rasp_score`, `rasp_action` ' +
          'and `event_id`, by which a support desk finds the rest.',
        params: tenantParams,
        body: z.strictObject({ ingest_answer: ingestAnswerSchema }),
        problems: ['conflict'],
        response: {
          200: z.object({ tenant_id: z.string(), ingest_answer: ingestAnswerSchema }),
        },
      },
    },
    async ({ params, body, principal }) => {
      const of = { tenantId: params.tenant_id, actor: actorOf(principal) }
      await changeSetting(deps, of, {
        name: 'ingest_answer',
        value: body.ingest_answer,
        action: 'tenant.ingest_answer_set',
      })
      return { tenant_id: of.tenantId, ...body }
    },
  )
}
