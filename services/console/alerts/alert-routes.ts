/** Alerts as operators work on them. */
import type { Alert, Disposition } from '#shared/core/alerts/alert-rules.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { adminActor, type ConsoleApp } from '../http/admin-app.ts'
import { alertParams, alertSchema, dispositionBody, problemSchema } from '../http/schemas.ts'

export type AlertRouteDeps = {
  setDisposition: (change: {
    alertId: string
    disposition: Disposition
    note: string | null
    actor: string
  }) => Promise<Alert | null>
}

export function addAlertRoutes(app: ConsoleApp, deps: AlertRouteDeps): void {
  app.post(
    '/alerts/:alert_id/disposition',
    {
      schema: {
        summary: 'Set the disposition of an alert',
        params: alertParams,
        body: dispositionBody,
        response: { 200: alertSchema, default: problemSchema },
      },
    },
    async ({ params, body }) => {
      const alert = await deps.setDisposition({
        alertId: params.alert_id,
        disposition: body.disposition,
        note: body.note ?? null,
        actor: adminActor,
      })
      if (alert !== null) return alert
      throw new Problem('alert_not_found', `There is no alert ${params.alert_id}.`)
    },
  )
}
