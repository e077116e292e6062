/**
 * A page of alerts for a query string, as the REST API and the admin API both answer it: filters
 * from parameters, and cursors that belong to one tenant and one set of filters.
 */
import { z } from 'zod'
import { type AlertFilter, type FilterName, listGiven } from '#shared/core/alerts/alert-filters.ts'
import {
  type CursorScope,
  decodeCursor,
  encodeCursor,
  instantMsSchema,
} from '#shared/core/http/pagination.ts'
import type { AlertStore } from './alert-store.ts'

const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^alr_[A-Za-z0-9_-]{1,60}$/)])

/**
 * A cursor binds these filters by their place, given or not, and others by name when they are
 * given: so it outlives releases that add filters. Add none here.
 */
const boundByPlace = [
  ...(['disposition', 'decision', 'severity', 'flag', 'min_score', 'device_id'] as const),
  ...(['user_id', 'session_id', 'assignee', 'from', 'to', 'updated_after'] as const),
] satisfies FilterName[]

const boundByName = (filter: AlertFilter) =>
  listGiven(filter)
    .filter(({ name }) => !boundByPlace.some((bound) => bound === name))
    .map(({ name, value }) => [name, value])

type Page = { limit: number; cursor?: string | undefined; after_seq?: number | undefined }

/**
 * Lists a page. One by `seq` has no cursor: the `seq` of its last alert continues it.
 * @throws Problem invalid_query for a cursor of another list
 */
export async function listAlertsByQuery(
  listAlerts: AlertStore['listAlerts'],
  tenantId: string,
  { limit, cursor, after_seq: afterSeq, ...filter }: AlertFilter & Page,
) {
  // The page size may change between pages.
  const filters = [tenantId, ...boundByPlace.map((name) => filter[name]), ...boundByName(filter)]
  const scope: CursorScope = { list: 'alerts', tenantId, filters }
  const after = cursor === undefined ? null : toPosition(scope, cursor)
  const { alerts, total, next } = await listAlerts({ tenantId, filter, limit, after, afterSeq })
  if (afterSeq !== undefined) return { data: alerts, total, limit, next_cursor: null }
  const nextCursor = next && encodeCursor(scope, [next.createdAtMs, next.alertId])
  return { data: alerts, total, limit, next_cursor: nextCursor }
}

function toPosition(scope: CursorScope, cursor: string) {
  const [createdAtMs, alertId] = decodeCursor(scope, cursor, positionSchema)
  return { createdAtMs, alertId }
}
