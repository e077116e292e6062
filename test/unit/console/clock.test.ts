// Times as an operator reads them.
import { describe, expect, it, vi } from 'vitest'
import { toExact, toIso, toRelative } from '../../../services/console/web/components/time/clock.ts'
import {
  keepPeriod,
  toRange,
  usualSpan,
} from '../../../services/console/web/components/time/periods.ts'
import {
  noteServerTime,
  onServerTimeFound,
  serverNowMs,
} from '../../../services/console/web/components/time/server-clock.ts'

const atMs = Date.parse('2026-11-25T14:03:09.250Z')

it.each([
  [0, 'now'],
  [-400, 'now'],
  [4_000, 'now'],
  [-7_000, '7 sec. ago'],
  [-59_000, '59 sec. ago'],
  [30_000, 'in 30 sec.'],
  [-60_000, '1 min. ago'],
  [-3_599_000, '59 min. ago'],
  [-3_600_000, '1 hr. ago'],
  [-172_800_000, '2 days ago'],
  [7_200_000, 'in 2 hr.'],
])('reads %i ms from now as %s', (distanceMs, text) => {
  expect(toRelative(atMs + distanceMs, atMs)).toBe(text)
})

it.each([
  [0, '2026-11-25 14:03:09 +00:00'],
  [420, '2026-11-25 21:03:09 +07:00'],
  [-210, '2026-11-25 10:33:09 -03:30'],
  [840, '2026-11-26 04:03:09 +14:00'],
])('prints the offset of %i minutes beside the exact time', (offset, text) => {
  expect(toExact(atMs, offset)).toBe(text)
})

it('is ISO in UTC when it is copied', () => {
  expect(toIso(atMs)).toBe('2026-11-25T14:03:09.250Z')
})

describe('the time of the server', () => {
  const hourMs = 3_600_000
  const toHeader = (ms: number) => new Date(ms).toUTCString()

  it('is counted from its answers, whatever the clock of the browser says', () => {
    const trueMs = Date.parse('2026-11-25T14:03:09Z')
    const clock = vi.spyOn(Date, 'now')
    let heard = 0
    const end = onServerTimeFound(() => heard++)
    try {
      const answerAt = (aheadMs: number, delayMs: number) => {
        clock.mockReturnValue(trueMs + aheadMs + delayMs)
        noteServerTime(toHeader(trueMs))
        return serverNowMs() - trueMs
      }
      // Right clocks: a slow answer moves nothing.
      expect(answerAt(0, 0)).toBe(0)
      expect(answerAt(0, 3_000)).toBe(3_000)
      expect(heard).toBe(0)
      for (const aheadMs of [3 * hourMs, -3 * hourMs]) {
        expect(answerAt(aheadMs, 0)).toBe(0)
        expect(answerAt(aheadMs, 3_000)).toBe(3_000)
      }
      expect(heard).toBe(2)
      // Without a readable date nothing changes; once the clock is set right, it counts again.
      for (const header of [null, '', 'tomorrow']) noteServerTime(header)
      expect(heard).toBe(2)
      expect(answerAt(0, 1_000)).toBe(1_000)
      expect(heard).toBe(3)
    } finally {
      end()
      clock.mockRestore()
    }
  })
})

const periodNowMs = Date.parse('2026-03-02T10:23:45.678Z')

describe('the period of a page', () => {
  it('of a day or more begins on the hour, of an hour on the minute, and ends now', () => {
    const beginOf = (span: string) => toRange({ span }, usualSpan, periodNowMs)
    expect(beginOf('1h')).toEqual({ span: '1h', from: '2026-03-02T09:23:00.000Z', to: null })
    expect(beginOf('24h')).toEqual({ span: '24h', from: '2026-03-01T10:00:00.000Z', to: null })
    expect(beginOf('30d').from).toBe('2026-01-31T10:00:00.000Z')
    expect(toRange({}, usualSpan, periodNowMs)).toEqual(beginOf('24h'))
    expect(toRange({ span: 'no such' }, usualSpan, periodNowMs)).toEqual(beginOf('24h'))
    expect(toRange({}, 'any', periodNowMs).from).toBe('1970-01-01T00:00:00.000Z')
  })

  it('stays from page to page, chosen by name or by its ends, without what else a page shows', () => {
    expect(keepPeriod({ span: '7d', case: 'cas_1' })).toEqual({ span: '7d' })
    const own = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-02T00:00:00.000Z' }
    expect(keepPeriod({ ...own, flag: 'ROOTED' })).toEqual(own)
    expect(toRange({ ...own, span: '7d' }, usualSpan, periodNowMs)).toEqual({ span: 'own', ...own })
  })
})
