/** Alerts of a tenant for operators: the list, one alert with all about it, disposition, notes. */

import { z } from 'zod'
import { operatorAlertSchema } from '#shared/core/alerts/alert-schema.ts'
import { noteSchema } from '#shared/core/alerts/alert-work-schemas.ts'
import { notesPerAlertMax } from '#shared/core/base/limits/alerts.ts'
import { adminAlertsQuerySchema } from '#shared/core/http/api-schemas.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type AlertStore, createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { addNote, readAlertWork, setAssignee } from '#shared/io/alerts/alert-work-store.ts'
import { listAlertsByQuery } from '#shared/io/alerts/list-by-query.ts'
import type { RiskPercentiles } from '#shared/io/outcomes/risk-percentiles.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { ExplainDeps } from '../events/explain-event.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { alertParams, dispositionBody, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  adminAlertPageSchema,
  alertCountsQuery,
  alertCountsSchema,
  alertDetailSchema,
  assigneeBody,
  noteBody,
} from './alert-schemas.ts'
import type { AlertReads } from './read-alerts.ts'
import { alertNotFound, showAlert, withWork } from './show-alert.ts'

export type AlertRouteDeps = ExplainDeps & { postgres: Postgres }

/** Adds the routes. */
export function addAlertRoutes(
  app: ConsoleApp,
  deps: AlertRouteDeps &
    Pick<AlertReads, 'listAlerts' | 'countAlertsBy'> & { findPercentile: RiskPercentiles['find'] },
): void {
  const store = createAlertStore(deps.postgres)
  addReads(app, { ...deps, findAlert: store.findAlert })
  addChanges(app, deps)
}

function addReads(
  app: ConsoleApp,
  deps: AlertRouteDeps &
    Pick<AlertStore, 'listAlerts' | 'findAlert'> &
    Pick<AlertReads, 'countAlertsBy'> & { findPercentile: RiskPercentiles['find'] },
): void {
  app.get(
    '/tenants/:tenant_id/alerts',
    {
      schema: {
        operationId: 'listAlerts',
        tags: ['Alerts'],
        summary: 'List and filter the alerts of a tenant, with the exact total',
        params: tenantParams,
        querystring: adminAlertsQuerySchema,
        response: { 200: adminAlertPageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(deps.postgres, tenantId)
      const page = await listAlertsByQuery(deps.listAlerts, tenantId, query)
      const ids = page.data.map((alert) => alert.alert_id)
      const work = await readAlertWork(deps.postgres, tenantId, ids)
      return { ...page, data: page.data.map((one) => withWork(one, work.get(one.alert_id))) }
    },
  )
  app.get(
    '/tenants/:tenant_id/alerts/counts',
    {
      schema: {
        operationId: 'countAlerts',
        tags: ['Alerts'],
        summary: 'How many alerts of a filter have each flag, or came from each SDK version',
        params: tenantParams,
        querystring: alertCountsQuery,
        response: { 200: alertCountsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { by, ...filter } }) => {
      await requireTenant(deps.postgres, tenantId)
      return { data: await deps.countAlertsBy({ tenantId, filter, by }) }
    },
  )
  app.get(
    '/alerts/:alert_id',
    {
      schema: {
        operationId: 'findAlert',
        conditional: true,
        tags: ['Alerts'],
        summary: 'One alert with notes, history, deliveries, and why it was raised',
        params: alertParams,
        problems: ['alert_not_found'],
        response: { 200: alertDetailSchema },
      },
    },
    async ({ params, principal }) =>
      showAlert(deps, { alertId: params.alert_id, scope: tenantsOf(principal) }),
  )
}

function addChanges(app: ConsoleApp, deps: AlertRouteDeps): void {
  app.post(
    '/alerts/:alert_id/disposition',
    {
      schema: {
        operationId: 'setDisposition',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Set the disposition of an alert',
        params: alertParams,
        body: dispositionBody,
        problems: ['alert_not_found', 'alert_changed'],
        response: { 200: operatorAlertSchema },
      },
    },
    async (request, reply) => {
      const { params, body, principal } = request
      const change = {
        alertId: params.alert_id,
        disposition: body.disposition,
        expected: body.expected_disposition,
        note: body.note ?? null,
        actor: actorOf(principal),
        scope: tenantsOf(principal),
      }
      return changeOnce(deps.postgres, { request, reply }, async (postgres) => {
        const alert = await createAlertStore(postgres).setDisposition(change)
        if (alert === null) throw alertNotFound(params.alert_id)
        const { tenant_id: tenantId, alert_id: alertId } = alert
        return withWork(alert, (await readAlertWork(postgres, tenantId, [alertId])).get(alertId))
      })
    },
  )
  app.put(
    '/alerts/:alert_id/assignee',
    {
      schema: {
        operationId: 'assignAlert',
        tags: ['Alerts'],
        summary: 'Assign an alert to an operator, or unassign it',
        params: alertParams,
        body: assigneeBody,
        problems: ['alert_not_found', 'alert_changed'],
        response: {
          200: z.object({ alert_id: z.string(), assignee: z.string().nullable() }),
        },
      },
    },
    async ({ params: { alert_id: alertId }, body, principal }) => {
      const { assignee, expected_assignee: expected } = body
      const scope = tenantsOf(principal)
      const change = { alertId, assignee, expected, scope, actor: actorOf(principal) }
      if ((await setAssignee(deps.postgres, change)) === null) throw alertNotFound(alertId)
      return { alert_id: alertId, assignee }
    },
  )
  app.post(
    '/alerts/:alert_id/notes',
    {
      schema: {
        operationId: 'addNote',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Add a note to an alert',
        params: alertParams,
        body: noteBody,
        problems: ['alert_not_found', 'conflict'],
        response: { 201: noteSchema },
      },
    },
    async (request, reply) => {
      const { params, body, principal } = request
      const { alert_id: alertId } = params
      const scope = tenantsOf(principal)
      const { note } = body
      const wanted = { alertId, note, scope, actor: actorOf(principal), most: notesPerAlertMax }
      const added = await changeOnce(deps.postgres, { request, reply }, async (postgres) => {
        const done = await addNote(postgres, wanted)
        if (done === null) throw alertNotFound(alertId)
        if (done !== 'full') return done
        throw new Problem('conflict', `An alert has at most ${notesPerAlertMax} notes.`)
      })
      return reply.code(201).send(added)
    },
  )
}
