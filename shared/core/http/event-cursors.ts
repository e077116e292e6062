/** The cursors of lists of events. */
import { z } from 'zod'
import type { EventFilter, EventPosition } from '#shared/core/telemetry/event-filters.ts'
import { type CursorScope, decodeCursor, encodeCursor, instantMsSchema } from './pagination.ts'

/** What a cursor continues: by name and only what is given, so it outlives added filters. */
export function toEventScope(tenantId: string, filter: EventFilter): CursorScope {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  return { list: 'events', tenantId, filters: given.sort(([a], [b]) => (a < b ? -1 : 1)) }
}

/** The end of a search that stopped early has no event. */
const positionSchema = z.tuple([instantMsSchema, z.string().regex(/^[A-Za-z0-9_-]{0,64}$/)])

/** @throws Problem for a cursor of another list */
export function toEventPosition(scope: CursorScope, cursor: string): EventPosition {
  const [receivedAtMs, eventId] = decodeCursor(scope, cursor, positionSchema)
  return { receivedAtMs, eventId }
}

export const toEventCursor = (scope: CursorScope, { receivedAtMs, eventId }: EventPosition) =>
  encodeCursor(scope, [receivedAtMs, eventId])
