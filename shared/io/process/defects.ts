/** Tells what is wrong with a message, or with our code, from what is wrong with the world. */
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
