/**
 * All alerts of a filter as CSV, sent in pieces as they are read. Clients choose ids, and a
 * spreadsheet runs a cell that begins like a formula: such a cell gets an apostrophe before it.
 */
import { Readable } from 'node:stream'
import { z } from 'zod'
import { alertFields } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import { adminAlertsQuerySchema } from '#shared/core/http/api-schemas.ts'
import { type CsvForm, toCsvRow, toCsvStart } from '#shared/core/http/csv.ts'
import type { AlertPosition } from '#shared/io/alerts/alert-query.ts'
import { type AlertWork, readAlertWork } from '#shared/io/alerts/alert-work-store.ts'
import type { UncountedPage } from '#shared/io/alerts/list-alerts.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import type { AlertReads } from './read-alerts.ts'
import { withWork } from './show-alert.ts'

const csvQuery = adminAlertsQuerySchema.omit({ limit: true, cursor: true }).extend({
  form: z
    .enum(['plain', 'excel'])
    .default('plain')
    .describe('`excel`: with a byte order mark, and ids of digits as text'),
})

/** Adds the route. */
export function addAlertCsvRoute(
  app: ConsoleApp,
  { postgres, listUncounted }: { postgres: Postgres } & Pick<AlertReads, 'listUncounted'>,
): void {
  app.get(
    '/tenants/:tenant_id/alerts.csv',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'exportAlerts',
        tags: ['Alerts'],
        summary: 'All alerts of a filter as CSV',
        params: tenantParams,
        querystring: csvQuery,
        response: {
          200: {
            description: 'A row per alert, after a row of names',
            content: { 'text/csv': { schema: z.string() } },
          },
        },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { form, ...filter }, principal }, reply) => {
      await requireTenant(postgres, tenantId)
      const readPage = (after: AlertPosition | null) =>
        listUncounted({ tenantId, filter, limit: alertsPageMax, after })
      // Before the answer begins, so that it is refused as a whole.
      const first = await readPage(null)
      const after = { filter }
      await insertAudit(postgres, {
        actor: actorOf(principal),
        tenantId,
        action: 'alert.exported',
        after,
      })
      reply.type('text/csv; charset=utf-8')
      reply.header('content-disposition', `attachment; filename="alerts-${tenantId}.csv"`)
      const readWork = (ids: string[]) => readAlertWork(postgres, tenantId, ids)
      return reply.send(Readable.from(writeRows(form, { first, readPage, readWork })) as never)
    },
  )
}

const cells = Object.values(alertFields)

async function* writeRows(
  form: CsvForm,
  {
    first,
    readPage,
    readWork,
  }: {
    first: UncountedPage
    readPage: (after: AlertPosition) => Promise<UncountedPage>
    readWork: (alertIds: string[]) => Promise<Map<string, AlertWork>>
  },
): AsyncGenerator<string> {
  yield toCsvStart(form) + toCsvRow(Object.keys(alertFields), form)
  for (let page = first; ; page = await readPage(page.next)) {
    const work = await readWork(page.alerts.map((alert) => alert.alert_id))
    const toRow = (one: Alert) => {
      const alert = withWork(one, work.get(one.alert_id))
      return toCsvRow(
        cells.map((toField) => toField(alert)),
        form,
      )
    }
    yield page.alerts.map(toRow).join('')
    if (page.next === null) return
  }
}
