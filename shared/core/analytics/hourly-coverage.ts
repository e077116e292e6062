/**
 * Which parts of a period are read from the counts of whole days and hours, and which from events:
 * the unfinished hour, what lies at its ends, and hours that got events after they were counted. A
 * day is the merged counts of its hours, so it holds while each of them does. Pure.
 */
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
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
  /** By day, when the hours were merged of which it has rows. */
  mergedAt: ReadonlyMap<number, number>
  /** What was counted up to then does not hold. */
  forgottenAt: number
  now: number
}

/** Each part in the order of time; together they are the period. */
export type HourlyCoverage = { days: Span[]; hours: Span[]; events: Span[] }

/** Whether the counting of an hour has all of its events. */
export function isCounted(hour: number, marks: HourlyMarks): boolean {
  const countedAt = marks.countedAt.get(hour)
  if (countedAt === undefined || countedAt <= marks.forgottenAt) return false
  if (hour < marks.now - hourlyCountDays * 24 * hourMs) return false
  const insertedAt = marks.insertedAt.get(hour)
  return insertedAt === undefined || insertedAt + hourlyQuietMs < countedAt
}

/** Whether a day is finished, all of its hours are counted, and none later than it was merged. */
function isMerged(day: number, marks: HourlyMarks): boolean {
  const mergedAt = marks.mergedAt.get(day)
  if (mergedAt === undefined) return false
  for (let hour = day; hour < day + dayMs; hour += hourMs) {
    if (!isCounted(hour, marks) || marks.countedAt.get(hour)! >= mergedAt) return false
  }
  return true
}

/**
 * Splits spans, of which none overlaps another.
 * @param options.withDays false where a day would be too long a step
 */
export function toHourlyCoverage(
  spans: readonly Span[],
  marks: HourlyMarks,
  { withDays } = { withDays: true },
): HourlyCoverage {
  const coverage: HourlyCoverage = { days: [], hours: [], events: [] }
  const toPart = (at: number, toMs: number): [part: keyof HourlyCoverage, end: number] => {
    const mayBeDay = withDays && at % dayMs === 0
    if (mayBeDay && at + dayMs <= toMs && isMerged(at, marks)) return ['days', at + dayMs]
    const hour = Math.floor(at / hourMs) * hourMs
    const isWhole = at === hour && hour + hourMs <= toMs
    const part = isWhole && isCounted(hour, marks) ? 'hours' : 'events'
    return [part, Math.min(hour + hourMs, toMs)]
  }
  for (const { fromMs, toMs } of spans) {
    for (let at = fromMs; at < toMs; ) {
      const [part, end] = toPart(at, toMs)
      addSpan(coverage[part], { fromMs: at, toMs: end })
      at = end
    }
  }
  return coverage.events.length > hourlyGapsMax
    ? { days: [], hours: [], events: [...spans] }
    : coverage
}

function addSpan(spans: Span[], { fromMs, toMs }: Span): void {
  const last = spans.at(-1)
  if (last?.toMs === fromMs) last.toMs = toMs
  else spans.push({ fromMs, toMs })
}
