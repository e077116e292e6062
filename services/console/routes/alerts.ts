/** Alerts and their deliveries as operators work on them. */
import { Problem } from '#shared/core/problem.ts'
import { createTenantStore } from '#shared/io/tenant-store.ts'
import { adminActor, type ConsoleApp, type ConsoleDeps } from '../app.ts'
import { tenantNotFound } from '../directory.ts'
import {
  alertParams,
  alertSchema,
  deliveriesSchema,
  dispositionBody,
  listDeliveriesQuery,
  problemSchema,
  tenantParams,
} from '../schemas.ts'

export function addAlertRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const store = createTenantStore(deps.postgres)
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
  app.get(
    '/tenants/:tenant_id/deliveries',
    {
      schema: {
        summary: 'List deliveries with their attempts, newest first',
        params: tenantParams,
        querystring: listDeliveriesQuery,
        response: { 200: deliveriesSchema, default: problemSchema },
      },
    },
    async ({ params, query: { state, limit } }) => {
      const tenantId = params.tenant_id
      if ((await store.findTenant(tenantId)) === null) throw tenantNotFound(tenantId)
      const of = { tenantId, limit, ...(state === undefined ? {} : { state }) }
      return { data: await deps.listDeliveries(of) }
    },
  )
}
