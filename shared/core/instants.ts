/**
 * Instants and spans of time: reading what a client wrote without losing or inventing a
 * millisecond, and cutting a span into whole days, whole hours and what is left.
 */

const dateTimePattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:?\d\d))?$/i

/**
 * Reads an ISO-8601 instant: a date and time with its offset, or a date, which is its midnight in
 * UTC. A time without an offset names no instant and is refused.
 *
 * Our own instants are whole milliseconds, so a finer one is rounded up: `x >= t` and `x < t` then
 * answer the same for the rounded instant as for the exact one.
 * @returns milliseconds since 1970, or null when the text is no instant
 */
export function parseInstant(text: string): number | null {
  // An offset's plus sign that was not percent-encoded in a query arrives as a space.
  const match = dateTimePattern.exec(text.replace(/ (?=\d\d:?\d\d$)/, '+'))
  if (match === null) return null
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = ''] = match
  const fields = [year, month, day, hour, minute, second].map(Number) as SixNumbers
  const wholeMs = toUtcMs(fields)
  const offsetMs = toOffsetMs(match[8])
  if (wholeMs === null || offsetMs === null) return null
  return wholeMs - offsetMs + Math.ceil(Number(fraction.padEnd(9, '0')) / 1_000_000)
}

type SixNumbers = [number, number, number, number, number, number]

function toUtcMs([year, month, day, hour, minute, second]: SixNumbers): number | null {
  if (hour > 23 || minute > 59 || second > 59) return null
  const date = new Date(0)
  // Date.UTC would read the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : null
}

function toOffsetMs(offset: string | undefined): number | null {
  if (offset === undefined || offset.toUpperCase() === 'Z') return 0
  const hours = Number(offset.slice(1, 3))
  const minutes = Number(offset.slice(-2))
  if (hours > 23 || minutes > 59) return null
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** From `fromMs` up to but not including `toMs`; empty when they are equal. May be infinite. */
export type Span = { fromMs: number; toMs: number }

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

export type SpanParts = { days: Span; hours: [Span, Span]; rests: [Span, Span] }

const nothing: Span = { fromMs: 0, toMs: 0 }

/**
 * Cuts a span into whole UTC days, the whole hours before and after them, and the rests of less
 * than an hour at either end. The parts do not overlap and make up the span.
 */
export function splitSpan({ fromMs, toMs }: Span): SpanParts {
  if (fromMs >= toMs) return { days: nothing, hours: [nothing, nothing], rests: [nothing, nothing] }
  const [hours, ...rests] = cut({ fromMs, toMs }, hourMs)
  const [days, ...hoursAround] = cut(hours, dayMs)
  return { days, hours: hoursAround, rests }
}

/** The whole units of a span, then what is left before and after them. */
function cut({ fromMs, toMs }: Span, unitMs: number): [Span, Span, Span] {
  const first = Math.ceil(fromMs / unitMs) * unitMs
  const last = Math.floor(toMs / unitMs) * unitMs
  // Within one unit there is nothing whole; all of it is "before".
  if (first > last) return [nothing, { fromMs, toMs }, nothing]
  return [
    { fromMs: first, toMs: last },
    { fromMs, toMs: first },
    { fromMs: last, toMs },
  ]
}
