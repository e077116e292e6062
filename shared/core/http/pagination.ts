/**
 * Opaque cursors: base64url of a small JSON array that begins with a digest of what the cursor is
 * for (list, tenant and filters), so that a cursor of another tenant, list or filter is refused
 * instead of quietly continuing somewhere else. A cursor only says where a page ended; whose rows
 * may be read is never taken from it.
 */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { cursorCharactersMax } from '#shared/core/base/limits/rest-api.ts'
import { Problem } from './problem.ts'

/**
 * What a cursor is bound to. `filters` is any JSON value in a fixed key order; the size of a page
 * is not one, it may change on the way.
 */
export type CursorScope = { list: string; tenantId: string; filters: unknown }

/** An instant as cursors hold it: whole milliseconds since 1970 within what a date can be. */
export const instantMsSchema = z.int().min(-8_640_000_000_000_000).max(8_640_000_000_000_000)

function toBinding(scope: CursorScope): string {
  const text = JSON.stringify([scope.list, scope.tenantId, scope.filters])
  return hash('sha256', text, 'base64url').slice(0, 16)
}

/** Encodes the position after the last row of a page. */
export function encodeCursor(scope: CursorScope, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([toBinding(scope), ...position])).toString('base64url')
}

/**
 * Reads a cursor.
 * @param positionSchema the tuple of values that this list's positions are
 * @throws Problem invalid_query naming `parameter` for anything that this list did not hand out
 */
export function decodeCursor<Position extends (string | number)[]>(
  scope: CursorScope,
  cursor: string,
  positionSchema: z.ZodType<Position>,
  parameter = 'cursor',
): Position {
  const value = parseCursor(cursor)
  const position = positionSchema.safeParse(value?.slice(1))
  if (value === null || value[0] !== toBinding(scope) || !position.success) {
    throw new Problem('invalid_query', 'The cursor is not one of this list and filters.', {
      errors: [{ path: parameter, message: 'is not a cursor of this list and these filters' }],
    })
  }
  return position.data
}

function parseCursor(cursor: string): unknown[] | null {
  // Decoding skips what is not base64url, so only one spelling of the same bytes may pass.
  if (cursor.length > cursorCharactersMax) return null
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.toString('base64url') !== cursor) return null
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
