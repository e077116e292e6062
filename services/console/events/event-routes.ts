/** The routes of a stored event: its body, and the explanation of its score. */
import { z } from 'zod'
import { isSignedBody } from '#shared/core/identity/sent-identifiers.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { type ExplainDeps, explainEvent, findEventOfScope } from './explain-event.ts'
import { eventExplanationSchema, eventParams, isIntactSchema } from './explanation-schemas.ts'

const bodySchema = z.object({
  event_id: z.string(),
  tenant_id: z.string(),
  body: z.string().describe('the submission as it is stored'),
  intact: isIntactSchema,
})

/** Adds the routes. */
export function addEventRoutes(app: ConsoleApp, deps: ExplainDeps): void {
  app.get(
    '/events/:event_id/body',
    {
      schema: {
        operationId: 'findEventBody',
        tags: ['Entities'],
        summary: 'The stored body of an event',
        description: 'Each read is in the audit log of the tenant.',
        params: eventParams,
        problems: ['event_not_found'],
        response: { 200: bodySchema },
      },
    },
    async ({ params, principal }) => {
      const wanted = { eventId: params.event_id, scope: tenantsOf(principal) }
      const { eventId, tenantId, body } = await findEventOfScope(deps, wanted)
      await insertAudit(deps.postgres, {
        actor: actorOf(principal),
        tenantId,
        action: 'event.body_read',
        after: { event_id: eventId },
      })
      const intact = isSignedBody(body, eventId)
      return { event_id: eventId, tenant_id: tenantId, body, intact }
    },
  )
  app.get(
    '/events/:event_id/explanation',
    {
      schema: {
        operationId: 'explainEvent',
        tags: ['Entities'],
        summary: 'Score a stored event again, step by step, and compare it with the response',
        params: eventParams,
        problems: ['event_not_found', 'event_not_explainable'],
        response: { 200: eventExplanationSchema },
      },
    },
    async ({ params, principal }) =>
      explainEvent(deps, { eventId: params.event_id, scope: tenantsOf(principal) }),
  )
}
