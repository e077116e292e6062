/** Distinguishes defects of a message or of our code from outages. */
import { isOfValue } from '#shared/io/postgres/postgres.ts'

/**
 * Whether an error is a mistake in our code, or of a value in a message, which no waiting cures.
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
