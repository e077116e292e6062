/**
 * `GET /v1/di/alerts`: the tenant's alerts, newest first, filtered and paged, with an exact total.
 */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { alertsQuerySchema } from '#shared/core/http/api-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import { readQuery } from '#shared/core/http/query-string.ts'
import type { AlertStore } from '#shared/io/alerts/alert-store.ts'
import type { Guard } from '../http/authenticate.ts'
import { compressed } from '../http/compress-answers.ts'

const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^alr_[A-Za-z0-9_-]{1,60}$/)])

export function addAlertRoutes(
  app: FastifyInstance,
  guard: Guard,
  { listAlerts }: Pick<AlertStore, 'listAlerts'>,
): void {
  app.get(
    '/v1/di/alerts',
    compressed,
    guard(async ({ tenantId, request, chargeRows }) => {
      const query = readQuery(request.url, alertsQuerySchema)
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
    }),
  )
}

/** A cursor continues one list of filters; how many rows a page has may change on the way. */
function toScope(tenantId: string, query: z.infer<typeof alertsQuerySchema>): CursorScope {
  const { disposition, decision, device_id, from, to } = query
  return { list: 'alerts', tenantId, filters: [disposition, decision, device_id, from, to] }
}

function toPosition(scope: CursorScope, cursor: string) {
  const [createdAtMs, alertId] = decodeCursor(scope, cursor, positionSchema)
  return { createdAtMs, alertId }
}
