/**
 * Which parts of a period are read from the counts of whole hours, and which from events: the
 * unfinished hour, what lies at its ends, and hours that got events after they were counted. Pure.
 */
import { hourMs, type Span } from '#shared/core/base/instants.ts'
import {
  hourlyCountDays,
  hourlyGapsMax,
  hourlyQuietMs,
} from '#shared/core/base/limits/analytics.ts'

/** What is known of the counted hours of a tenant; all instants in ms since 1970. */
export type HourlyMarks = {
  /** By hour, when its latest counting began. */
  countedAt: ReadonlyMap<number, number>
  /** By hour, when its last row was inserted; the hours of the last days. */
  insertedAt: ReadonlyMap<number, number>
  /** What was counted up to then does not hold. */
  forgottenAt: number
  now: number
}

/** Both parts in the order of time; together they are the period. */
export type HourlyCoverage = { counted: Span[]; events: Span[] }

/** Whether the counting of an hour has all of its events. */
export function isCounted(hour: number, marks: HourlyMarks): boolean {
  const countedAt = marks.countedAt.get(hour)
  if (countedAt === undefined || countedAt <= marks.forgottenAt) return false
  if (hour < marks.now - hourlyCountDays * 24 * hourMs) return false
  const insertedAt = marks.insertedAt.get(hour)
  return insertedAt === undefined || insertedAt + hourlyQuietMs < countedAt
}

/** Splits spans, of which none overlaps another. */
export function toHourlyCoverage(spans: readonly Span[], marks: HourlyMarks): HourlyCoverage {
  const coverage: HourlyCoverage = { counted: [], events: [] }
  for (const span of spans) {
    let at = span.fromMs
    while (at < span.toMs) {
      const hour = Math.floor(at / hourMs) * hourMs
      const isWhole = at === hour && hour + hourMs <= span.toMs
      const end = Math.min(hour + hourMs, span.toMs)
      const part = isWhole && isCounted(hour, marks) ? coverage.counted : coverage.events
      addSpan(part, { fromMs: at, toMs: end })
      at = end
    }
  }
  return coverage.events.length > hourlyGapsMax ? { counted: [], events: [...spans] } : coverage
}

function addSpan(spans: Span[], { fromMs, toMs }: Span): void {
  const last = spans.at(-1)
  if (last?.toMs === fromMs) last.toMs = toMs
  else spans.push({ fromMs, toMs })
}
