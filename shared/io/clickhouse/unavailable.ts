/** Turns a failure of ClickHouse into a 503. */
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { toLoggable } from './clickhouse.ts'

/**
 * For `catch`: rejects with a problem `unavailable` whose cause is safe to log. Other problems pass
 * unchanged.
 * @param detail the public text, such as `The alerts cannot be read at the moment.`
 */
export const rejectUnavailable =
  (detail: string) =>
  (error: unknown): never => {
    if (error instanceof Problem) throw error
    throw unavailable(detail, toLoggable(error))
  }
