/** The route that explains a stored event's score. */
import { type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { type ExplainDeps, explainEvent } from './explain-event.ts'
import { eventExplanationSchema, eventParams } from './explanation-schemas.ts'

/** Adds the route. */
export function addEventRoutes(app: ConsoleApp, deps: ExplainDeps): void {
  app.get(
    '/events/:event_id/explanation',
    {
      schema: {
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
