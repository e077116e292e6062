// The period of a page: one default for every page, whole hours, and the same from page to page.
import { describe, expect, it } from 'vitest'
import {
  keepPeriod,
  toRange,
  usualSpan,
} from '../../../services/console/web/components/time/periods.ts'

const nowMs = Date.parse('2026-03-02T10:23:45.678Z')

describe('the period of a page', () => {
  it('of a day or more begins on the hour, of an hour on the minute, and ends now', () => {
    const beginOf = (span: string) => toRange({ span }, usualSpan, nowMs)
    expect(beginOf('1h')).toEqual({ span: '1h', from: '2026-03-02T09:23:00.000Z', to: null })
    expect(beginOf('24h')).toEqual({ span: '24h', from: '2026-03-01T10:00:00.000Z', to: null })
    expect(beginOf('30d').from).toBe('2026-01-31T10:00:00.000Z')
    expect(toRange({}, usualSpan, nowMs)).toEqual(beginOf('24h'))
    expect(toRange({ span: 'no such' }, usualSpan, nowMs)).toEqual(beginOf('24h'))
    expect(toRange({}, 'any', nowMs).from).toBe('1970-01-01T00:00:00.000Z')
  })

  it('stays from page to page, chosen by name or by its ends, without what else a page shows', () => {
    expect(keepPeriod({ span: '7d', case: 'cas_1' })).toEqual({ span: '7d' })
    const own = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-02T00:00:00.000Z' }
    expect(keepPeriod({ ...own, flag: 'ROOTED' })).toEqual(own)
    expect(toRange({ ...own, span: '7d' }, usualSpan, nowMs)).toEqual({ span: 'own', ...own })
  })
})
