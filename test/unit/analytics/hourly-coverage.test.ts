// Which hours of a period are read as counts: those whose counting has all of their events.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type HourlyMarks, toHourlyCoverage } from '#shared/core/analytics/hourly-coverage.ts'
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
import {
  hourlyCountDays,
  hourlyGapsMax,
  hourlyQuietMs,
  overviewMoverDevicesMin,
} from '#shared/core/base/limits/analytics.ts'
import { toDaySpans } from '../../../services/console/jobs/hourly-counts.ts'
import { toMovers } from '../../../services/console/overview/movers.ts'
import {
  toBeforeMs,
  toLine,
  toStepMs,
  toStepTimes,
} from '../../../services/console/overview/overview-lines.ts'

const day = 500_000 * hourMs - ((500_000 * hourMs) % dayMs)
const now = day + 10 * dayMs
const marks = (more: Partial<HourlyMarks> = {}): HourlyMarks => ({
  countedAt: new Map(Array.from({ length: 10 }, (_, n) => [day + n * hourMs, now])),
  insertedAt: new Map(),
  mergedAt: new Map(),
  forgottenAt: 0,
  now,
  ...more,
})
const hours = (from: number, to: number): Span => ({
  fromMs: day + from * hourMs,
  toMs: day + to * hourMs,
})

describe('the counts of hours', () => {
  it('are read of whole hours, and events of the ends of a period', () => {
    expect(toHourlyCoverage([hours(0.5, 3.25)], marks())).toEqual({
      days: [],
      hours: [hours(1, 3)],
      events: [hours(0.5, 1), hours(3, 3.25)],
    })
    expect(toHourlyCoverage([hours(8, 12)], marks())).toEqual({
      days: [],
      hours: [hours(8, 10)],
      events: [hours(10, 12)],
    })
  })

  it('are not read of an hour with a row that its counting may not have', () => {
    const late = (insertedMs: number) =>
      marks({ insertedAt: new Map([[day + 2 * hourMs, insertedMs]]) })
    const all = { days: [], hours: [hours(0, 4)], events: [] }
    const without = { days: [], hours: [hours(0, 2), hours(3, 4)], events: [hours(2, 3)] }
    expect(toHourlyCoverage([hours(0, 4)], late(now - hourlyQuietMs - 1))).toEqual(all)
    expect(toHourlyCoverage([hours(0, 4)], late(now - hourlyQuietMs))).toEqual(without)
    expect(toHourlyCoverage([hours(0, 4)], late(now + 1))).toEqual(without)
  })

  it('are not read when they were forgotten, or may be removed soon', () => {
    const none = { days: [], hours: [], events: [hours(0, 4)] }
    expect(toHourlyCoverage([hours(0, 4)], marks({ forgottenAt: now }))).toEqual(none)
    const later = day + hourlyCountDays * dayMs + 4 * hourMs
    expect(toHourlyCoverage([hours(0, 4)], marks({ now: later }))).toEqual(none)
  })

  it('are read of a whole day once it is merged after the last counting of its hours', () => {
    const all = Array.from({ length: 48 }, (_, n) => n)
    const read = (more: {
      without?: number
      late?: number
      again?: number
      forgottenAt?: number
    }) =>
      toHourlyCoverage(
        [hours(-0.5, 30)],
        marks({
          countedAt: new Map(
            all
              .filter((n) => n !== more.without)
              .map((n) => [day + n * hourMs, n === more.again ? now + 5 : now]),
          ),
          insertedAt: new Map(more.late === undefined ? [] : [[day + more.late * hourMs, now]]),
          mergedAt: new Map([[day, now + 5]]),
          forgottenAt: more.forgottenAt ?? 0,
        }),
      )
    const ends = { before: hours(-0.5, 0), after: hours(24, 30) }
    expect(read({})).toEqual({ days: [hours(0, 24)], hours: [ends.after], events: [ends.before] })
    const without = { days: [], hours: [hours(0, 7), hours(8, 30)] }
    expect(read({ without: 7 })).toEqual({ ...without, events: [ends.before, hours(7, 8)] })
    expect(read({ late: 7 })).toEqual({ ...without, events: [ends.before, hours(7, 8)] })
    expect(read({ again: 7 })).toEqual({ days: [], hours: [hours(0, 30)], events: [ends.before] })
    expect(read({ forgottenAt: now })).toEqual({ days: [], hours: [], events: [hours(-0.5, 30)] })
  })

  it('and events are the period, each part once, and few parts', () => {
    const anyHours = fc.uniqueArray(fc.integer({ min: 0, max: 99 }))
    const anyDays = fc.uniqueArray(fc.integer({ min: 0, max: 4 }))
    const anyEnd = fc.double({ min: 0, max: 100, noNaN: true })
    fc.assert(
      fc.property(anyHours, anyDays, anyEnd, anyEnd, (counted, days, one, other) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)]
        const span = {
          fromMs: Math.floor(hours(from, 0).fromMs),
          toMs: Math.ceil(hours(to, 0).fromMs),
        }
        const countedAt = new Map(counted.map((n) => [day + n * hourMs, now]))
        const mergedAt = new Map(days.map((n) => [day + n * dayMs, now + 1]))
        const coverage = toHourlyCoverage([span], marks({ countedAt, mergedAt }))
        expect(coverage.events.length).toBeLessThanOrEqual(hourlyGapsMax)
        const parts = Object.values(coverage)
          .flat()
          .sort((a, b) => a.fromMs - b.fromMs)
        let at = span.fromMs
        for (const { fromMs, toMs } of parts) {
          expect(fromMs).toBe(at)
          at = toMs
        }
        expect(at).toBe(span.toMs)
      }),
    )
  })

  it('are made of hours that follow each other within a day', () => {
    const at = (n: number) => day + n * hourMs
    expect(toDaySpans([at(1), at(2), at(4), at(23), at(24)])).toEqual([
      hours(1, 3),
      hours(4, 5),
      hours(23, 24),
      hours(24, 25),
    ])
  })
})

describe('a line of the overview', () => {
  it('has the values of both periods, step by step', () => {
    const span = {
      beforeMs: day - 23.5 * hourMs,
      fromMs: day + 30 * 60_000,
      toMs: day + 24.5 * hourMs,
    }
    expect(toBeforeMs(span)).toBe(span.beforeMs)
    const stepMs = toStepMs(span)
    expect([stepMs, toStepTimes(span, stepMs).length]).toEqual([hourMs, 25])
    const line = toLine(
      [
        { isNow: true, atMs: day, value: 2 },
        { isNow: true, atMs: day + 24 * hourMs, value: 3 },
        { isNow: false, atMs: day - 24 * hourMs, value: 5 },
        { isNow: false, atMs: day, value: 7 },
      ],
      span,
      stepMs,
    )
    expect([line.now[0], line.now[24], line.before[0], line.before[24]]).toEqual([2, 3, 5, 7])
  })

  it('is of a period before that is as long, to the hour where both can be read as hours', () => {
    const beforeOf = (from: number, long: number) =>
      (toBeforeMs({ fromMs: day + from * hourMs, toMs: day + (from + long) * hourMs }) - day) /
      hourMs
    expect(beforeOf(0, 24)).toBe(-24)
    expect(beforeOf(0, 24.4)).toBe(-24)
    expect(beforeOf(0, 24.6)).toBe(-25)
    expect(beforeOf(0.5, 24.25)).toBe(-23.75)
    expect(beforeOf(0, 3.25)).toBe(-3.25)
  })

  it('loses nothing of a period that is no whole number of steps', () => {
    const anySpan = fc.tuple(
      fc.integer({ min: day, max: day + dayMs }),
      fc.integer({ min: 60_000, max: 40 * dayMs }),
    )
    fc.assert(
      fc.property(anySpan, fc.double({ min: 0, max: 0.999, noNaN: true }), ([from, long], part) => {
        const period = { fromMs: from, toMs: from + long }
        const span = { ...period, beforeMs: toBeforeMs(period) }
        const stepMs = toStepMs(span)
        const at = (ms: number) => Math.floor(Math.floor(ms) / stepMs) * stepMs
        const values = [
          { isNow: true, atMs: at(from + part * long), value: 1 },
          { isNow: false, atMs: at(span.beforeMs + part * (from - span.beforeMs)), value: 1 },
        ]
        const { now: later, before } = toLine(values, span, stepMs)
        const sum = (all: number[]) => all.reduce((total, one) => total + one, 0)
        expect([sum(later), sum(before)]).toEqual([1, 1])
      }),
    )
  })
})

describe('the signals that changed most', () => {
  const signals = [
    { signal: 'root.su_binary', devices: { now: 30, before: 10 } },
    { signal: 'network.vpn', devices: { now: 50, before: 49 } },
    { signal: 'debugger.attached', devices: { now: 5, before: 5 } },
  ]

  it('are those whose share of the devices changed, the largest change first', () => {
    const found = toMovers(signals, { now: 100, before: 100 })
    expect(found?.map(({ signal }) => signal)).toEqual(['root.su_binary', 'network.vpn'])
    expect(found?.[0]?.share).toEqual({ now: 0.3, before: 0.1 })
  })

  it('are not compared where one of the periods has few devices', () => {
    const few = overviewMoverDevicesMin - 1
    expect(toMovers(signals, { now: 1_000, before: few })).toBeNull()
    expect(toMovers(signals, { now: few, before: 1_000 })).toBeNull()
    expect(toMovers([], { now: few + 1, before: few + 1 })).toEqual([])
  })
})
