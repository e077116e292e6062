/** Distinguishes defects from outages. */
import pg from 'pg'

/**
 * Whether an error comes from the code or from a value in a message, so that waiting is useless.
 */
export function isDefect(error: unknown): boolean {
  return (
    isOfValue(error) ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError
  )
}

/** Whether Postgres refused a value, so that a retry is useless. */
function isOfValue(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('22') === true
}
