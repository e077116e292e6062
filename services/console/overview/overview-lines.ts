/** The lines of the overview: a period beside the one before, step by step. Pure. */
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'

/** A value in a step, which is named by its beginning, of the period or of the one before. */
export type StepValue = { isNow: boolean; atMs: number; value: number }

export type Line = { now: number[]; before: number[] }

/** Five minutes in up to three hours, an hour in up to three days, a day in more. */
export function toStepMs({ fromMs, toMs }: Span): number {
  if (toMs - fromMs <= 3 * hourMs) return hourMs / 12
  return toMs - fromMs <= 3 * dayMs ? hourMs : dayMs
}

/** The beginnings of the steps of a period; the first and the last step may reach beyond it. */
export function toStepTimes({ fromMs, toMs }: Span, stepMs: number): number[] {
  const times: number[] = []
  for (let at = Math.floor(fromMs / stepMs) * stepMs; at < toMs; at += stepMs) times.push(at)
  return times
}

/**
 * Where the period before begins; it ends where the period begins, and is as long. Where that is
 * on the hour and a day or more, it is as long to the hour, so that its hours are all counted: a
 * few events at an end are found by reading a month of them.
 */
export function toBeforeMs({ fromMs, toMs }: Span): number {
  const longMs = toMs - fromMs
  if (fromMs % hourMs !== 0 || longMs < dayMs) return fromMs - longMs
  return fromMs - Math.round(longMs / hourMs) * hourMs
}

/** Puts values in their steps; those of the period before stand as far from its beginning. */
export function toLine(
  values: readonly StepValue[],
  span: Span & { beforeMs: number },
  stepMs: number,
): Line {
  const length = toStepTimes(span, stepMs).length
  const { beforeMs } = span
  const line: Line = { now: Array(length).fill(0), before: Array(length).fill(0) }
  for (const { isNow, atMs, value } of values) {
    const first = Math.floor((isNow ? span.fromMs : beforeMs) / stepMs) * stepMs
    // A period that is no whole number of steps may have one step more than the other.
    const place = Math.min(length - 1, (atMs - first) / stepMs)
    const part = isNow ? line.now : line.before
    part[place] = part[place]! + value
  }
  return line
}
