/** The span of time of a query of the admin API. */
import { dayMs, type Span } from '#shared/core/base/instants.ts'
import { toInvalidQuery } from '#shared/core/http/query-string.ts'

/**
 * Without `to` it ends now, and without `from` it is a day. As much time as it has must have passed
 * before it since 1970, so that it can be compared with the span before.
 * @throws Problem invalid_query when it is empty or longer than `daysMax`
 */
export function toQuerySpan(
  query: { from?: number | undefined; to?: number | undefined },
  { nowMs, daysMax }: { nowMs: number; daysMax: number },
): Span {
  const toMs = query.to ?? nowMs
  const fromMs = query.from ?? toMs - dayMs
  const longMs = toMs - fromMs
  if (longMs > 0 && longMs <= daysMax * dayMs && fromMs >= longMs) return { fromMs, toMs }
  const message = `must be before \`to\`, by at most ${daysMax} days`
  throw toInvalidQuery([{ path: 'from', message }])
}
