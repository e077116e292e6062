/** Distinguishes defects from outages. */
import { isOfValue } from '#shared/io/postgres/postgres.ts'

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
