/**
 * A page of alerts for a query string, as the REST API and the admin API both answer it: filters
 * from parameters, and cursors that belong to one tenant and one set of filters.
 */
import { z } from 'zod'
import type { AlertsQuery } from '#shared/core/http/api-schemas.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import type { AlertFilters } from './alert-query.ts'
import type { AlertStore } from './alert-store.ts'

const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^alr_[A-Za-z0-9_-]{1,60}$/)])

/** The parameters that choose alerts; operators have `assignee` as well. */
export type FilterQuery = Omit<AlertsQuery, 'limit' | 'cursor'> & { assignee?: string | undefined }

/** The value of `assignee` that stands for alerts without one. */
export const unassigned = 'none'

/** The filters of a query. */
export const toAlertFilters = (tenantId: string, query: FilterQuery): AlertFilters => ({
  tenantId,
  dispositions: query.disposition,
  decisions: query.decision,
  severities: query.severity,
  flags: query.flag,
  minScore: query.min_score,
  deviceId: query.device_id,
  userId: query.user_id,
  sessionId: query.session_id,
  assignee: query.assignee === unassigned ? null : query.assignee,
  fromMs: query.from,
  toMs: query.to,
  updatedAfterMs: query.updated_after,
})

/** Lists a page. @throws Problem invalid_query for a cursor of another list */
export async function listAlertsByQuery(
  listAlerts: AlertStore['listAlerts'],
  tenantId: string,
  query: FilterQuery & Pick<AlertsQuery, 'limit' | 'cursor'>,
) {
  const filters = toAlertFilters(tenantId, query)
  // The page size may change between pages. The assignee is as in the query, since in JSON a null
  // filter would be the same as one that is left out.
  const bound = Object.values({ ...filters, assignee: query.assignee })
  const scope: CursorScope = { list: 'alerts', tenantId, filters: bound }
  const { alerts, total, next } = await listAlerts({
    ...filters,
    limit: query.limit,
    after: query.cursor === undefined ? null : toPosition(scope, query.cursor),
  })
  const cursor = next && encodeCursor(scope, [next.createdAtMs, next.alertId])
  return { data: alerts, total, limit: query.limit, next_cursor: cursor }
}

function toPosition(scope: CursorScope, cursor: string) {
  const [createdAtMs, alertId] = decodeCursor(scope, cursor, positionSchema)
  return { createdAtMs, alertId }
}
