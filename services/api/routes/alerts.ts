/** `GET /v1/di/alerts`: the tenant's alerts, newest first, filtered, with an exact total. */
import { z } from 'zod'
import { alertsPageDefault } from '#shared/core/base/limits/rest-api.ts'
import {
  type AlertsQuery,
  alertPageSchema,
  alertsQuerySchema,
} from '#shared/core/http/api-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import { compressed } from '../http/compress-responses.ts'
import { alertExample } from '../openapi/examples.ts'

const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^alr_[A-Za-z0-9_-]{1,60}$/)])

/** Adds the route. */
export function addAlertRoutes(app: ZodApp, { listAlerts }: Pick<AlertStore, 'listAlerts'>): void {
  app.get(
    '/v1/di/alerts',
    {
      ...compressed,
      schema: {
        operationId: 'listAlerts',
        tags: ['Alerts'],
        summary: 'List and filter alerts',
        description:
          'Newest first. `total` is exact, and of the same instant as the page. Every 50 alerts of a page count as one call of the tenant’s rate. An unknown parameter, a repeated one or a bad value is a 400 that names it.',
        querystring: alertsQuerySchema,
        response: { 200: alertPageSchema },
        example: { data: [alertExample], total: 1, limit: alertsPageDefault, next_cursor: null },
      },
    },
    async ({ query, caller: { tenantId, chargeRows } }) => {
      const scope = toScope(tenantId, query)
      const { alerts, total, next } = await listAlerts({
        tenantId,
        disposition: query.disposition,
        decision: query.decision,
        deviceId: query.device_id,
        fromMs: query.from,
        toMs: query.to,
        limit: query.limit,
        after: query.cursor === undefined ? null : toPosition(scope, query.cursor),
      })
      chargeRows(alerts.length)
      return {
        data: alerts,
        total,
        limit: query.limit,
        next_cursor: next && encodeCursor(scope, [next.createdAtMs, next.alertId]),
      }
    },
  )
}

/** A cursor belongs to one set of filters. The page size may change between pages. */
function toScope(tenantId: string, query: AlertsQuery): CursorScope {
  const { disposition, decision, device_id, from, to } = query
  return { list: 'alerts', tenantId, filters: [disposition, decision, device_id, from, to] }
}

function toPosition(scope: CursorScope, cursor: string) {
  const [createdAtMs, alertId] = decodeCursor(scope, cursor, positionSchema)
  return { createdAtMs, alertId }
}
