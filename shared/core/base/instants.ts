/**
 * Instants and spans of time: parsing the texts of clients exactly, and splitting a span into whole
 * days, whole hours and remainders.
 */

const dateTimePattern =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:?\d\d))?$/i

/**
 * Parses an ISO-8601 instant: a date and time with its offset, or a date, which is its midnight in
 * UTC. A time without an offset is refused.
 *
 * Stored instants are whole milliseconds, so a finer one is rounded up: `x >= t` and `x < t` then
 * have the same result for the rounded instant as for the exact one.
 * @returns milliseconds since 1970, or null when the text is no instant
 */
export function parseInstant(text: string): number | null {
  // A plus sign that was not percent-encoded in a query arrives as a space.
  const match = dateTimePattern.exec(text.replace(/ (?=\d\d:?\d\d$)/, '+'))
  if (match === null) return null
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = ''] = match
  const fields = [year, month, day, hour, minute, second].map(Number) as SixNumbers
  const wholeMs = toUtcMs(fields)
  const offsetMs = toOffsetMs(match[8])
  if (wholeMs === null || offsetMs === null) return null
  return wholeMs - offsetMs + Math.ceil(Number(fraction.padEnd(9, '0')) / 1_000_000)
}

// Also the basic format, and the suffixes in brackets of RFC 9557.
const occurredPattern =
  /^(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d(?::?\d\d)?))?(?:\[[^[\]]+\])*$/i
const occurredCharactersMax = 128
/** From this number on (1973) numbers are milliseconds since 1970. Lower ones may be seconds. */
const epochMsMin = 1e11

/**
 * Parses a client's `occurred_at`. It accepts every form of one instant; leap seconds and
 * `24:00:00` are the start of the next minute or day.
 * @param value any JSON value
 * @returns milliseconds since 1970, or null when it is no instant
 */
export function readOccurredAt(value: unknown): number | null {
  if (typeof value === 'number') {
    return value >= epochMsMin && Number.isFinite(value) ? Math.round(value) : null
  }
  if (typeof value !== 'string' || value.length > occurredCharactersMax) return null
  const match = occurredPattern.exec(value)
  if (match === null) return null
  const [, year, month, day, ...time] = match
  const [hour, minute, second] = time.slice(0, 3).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
  ]
  const dayStartMs = toUtcMs([Number(year), Number(month), Number(day), 0, 0, 0])
  const offsetMs = toOffsetMs(match[8])
  if (dayStartMs === null || offsetMs === null || minute > 59 || second > 60) return null
  if (hour > 24 || (hour === 24 && minute + second > 0)) return null
  const fractionMs = Math.floor(Number((match[7] ?? '').slice(0, 9).padEnd(9, '0')) / 1_000_000)
  return dayStartMs + ((hour * 60 + minute) * 60 + second) * 1_000 + fractionMs - offsetMs
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
  const minutes = offset.length > 3 ? Number(offset.slice(-2)) : 0
  if (hours > 23 || minutes > 59) return null
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** From `fromMs` (inclusive) to `toMs` (exclusive); empty when equal. Either may be infinite. */
export type Span = { fromMs: number; toMs: number }

/** An instant in ISO-8601, UTC, with milliseconds. @param ms milliseconds since 1970 */
export const toIso = (ms: number): string => new Date(ms).toISOString()

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/** A span to add (1), to subtract (-1) or, when empty, to ignore (0). */
export type SignedSpan = Span & { sign: 1 | 0 | -1 }

type SpanParts = {
  days: Span
  hours: [SignedSpan, SignedSpan]
  rests: [SignedSpan, SignedSpan]
}

/**
 * Splits a span into whole UTC days, whole hours at either end and remainders at either end. Each
 * cut is at the nearest day or hour, inside or outside the span. So hours are at most half a day
 * and remainders at most half an hour, to add or to subtract.
 */
export function splitSpan({ fromMs, toMs }: Span): SpanParts {
  const [from, to] = fromMs < toMs ? [fromMs, toMs] : [0, 0]
  const hours = { fromMs: toNearest(from, hourMs), toMs: toNearest(to, hourMs) }
  const days = { fromMs: toNearest(hours.fromMs, dayMs), toMs: toNearest(hours.toMs, dayMs) }
  return { days, hours: toEnds(hours, days), rests: toEnds({ fromMs: from, toMs: to }, hours) }
}

/** Adding 0 turns -0 into 0. */
const toNearest = (ms: number, unitMs: number): number => Math.round(ms / unitMs) * unitMs + 0

/** The differences between a span and its rounded one, at its start and its end. */
function toEnds(span: Span, rounded: Span): [SignedSpan, SignedSpan] {
  const between = (one: number, other: number, sign: 1 | -1): SignedSpan => ({
    fromMs: Math.min(one, other),
    toMs: Math.max(one, other),
    sign: one === other ? 0 : one < other ? sign : (-sign as 1 | -1),
  })
  return [between(span.fromMs, rounded.fromMs, 1), between(span.toMs, rounded.toMs, -1)]
}
