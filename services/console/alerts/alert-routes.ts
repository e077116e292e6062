/** The route that sets the disposition of an alert. */
import type { Alert, Disposition } from '#shared/core/alerts/alert-rules.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { TenantScope } from '#shared/core/operators/roles.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { alertParams, alertSchema, dispositionBody } from '../http/schemas.ts'

export type AlertRouteDeps = {
  setDisposition: (change: {
    alertId: string
    disposition: Disposition
    note: string | null
    actor: string
    scope: TenantScope
  }) => Promise<Alert | null>
}

/** Adds the route. */
export function addAlertRoutes(app: ConsoleApp, deps: AlertRouteDeps): void {
  app.post(
    '/alerts/:alert_id/disposition',
    {
      schema: {
        summary: 'Set the disposition of an alert',
        params: alertParams,
        body: dispositionBody,
        problems: ['alert_not_found'],
        response: { 200: alertSchema },
      },
    },
    async ({ params, body, principal }) => {
      const alert = await deps.setDisposition({
        alertId: params.alert_id,
        disposition: body.disposition,
        note: body.note ?? null,
        actor: actorOf(principal),
        scope: tenantsOf(principal),
      })
      if (alert !== null) return alert
      throw new Problem('alert_not_found', `There is no alert ${params.alert_id}.`)
    },
  )
}
