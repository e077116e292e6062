/**
 * Opaque cursors: base64url of a small JSON array that starts with a digest of its scope (list,
 * tenant and filters). A cursor of another tenant, list or filter is refused. A cursor contains
 * only the end of a page; it grants no access to rows.
 */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { cursorCharactersMax } from '#shared/core/base/limits/rest-api.ts'
import { Problem } from './problem.ts'

/**
 * The scope of a cursor. `filters` is any JSON value in a fixed key order, without the page size,
 * which may change between pages.
 */
export type CursorScope = { list: string; tenantId: string; filters: unknown }

/** An instant in a cursor: whole milliseconds since 1970 within the range of a date. */
export const instantMsSchema = z.int().min(-8_640_000_000_000_000).max(8_640_000_000_000_000)

function toBinding(scope: CursorScope): string {
  const text = JSON.stringify([scope.list, scope.tenantId, scope.filters])
  return hash('sha256', text, 'base64url').slice(0, 16)
}

/** Encodes the position of the last row of a page. */
export function encodeCursor(scope: CursorScope, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([toBinding(scope), ...position])).toString('base64url')
}

/**
 * Reads a cursor.
 * @param positionSchema the tuple of a position in this list
 * @throws Problem invalid_query with the path `parameter` for anything but a cursor of this scope
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
