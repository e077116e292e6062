/**
 * Opaque cursors: base64url of a small JSON array that begins with what the cursor is for, the
 * tenant and a digest of the filters, so that a cursor of another tenant, list or filter is refused
 * instead of quietly continuing somewhere else.
 */
import { hash } from 'node:crypto'
import { Problem } from './problem.ts'

/** What a cursor is bound to. `filters` is any JSON value in a fixed key order. */
export type CursorScope = { list: string; tenantId: string; filters: unknown }

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
 * @param length how many values a position of this list has
 * @throws Problem invalid_query naming `parameter` for anything that this list did not hand out
 */
export function decodeCursor(
  scope: CursorScope,
  cursor: string,
  length: number,
  parameter = 'cursor',
): (string | number)[] {
  const refused = new Problem('invalid_query', 'The cursor is not one of this list and filters.', {
    errors: [{ path: parameter, message: 'is not a cursor of this list and these filters' }],
  })
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    throw refused
  }
  if (!Array.isArray(value) || value.length !== length + 1 || value[0] !== toBinding(scope)) {
    throw refused
  }
  const position: unknown[] = value.slice(1)
  if (!position.every((part) => typeof part === 'string' || typeof part === 'number')) throw refused
  return position as (string | number)[]
}
