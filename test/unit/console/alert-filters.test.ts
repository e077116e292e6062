// The filters of the list of alerts between the page's URL and the API.
import { describe, expect, it } from 'vitest'
import {
  pickFilters,
  replaceFilters,
  toggleValue,
  toQuery,
} from '../../../services/console/web/pages/alerts/filters/filter-values.ts'

const nowMs = Date.UTC(2026, 2, 2)

describe('the filters of the list', () => {
  it('are picked from the URL in one order, without what is no filter', () => {
    const picked = pickFilters({ flag: 'ROOTED', alert: 'alr_1', disposition: 'OPEN', live: 'off' })
    expect(JSON.stringify(picked)).toBe('{"disposition":"OPEN","flag":"ROOTED"}')
  })

  it('become parameters of the API, a span as the moment where it begins', () => {
    expect(toQuery({ severity: 'HIGH,CRITICAL', span: '24h' }, nowMs)).toEqual({
      severity: 'HIGH,CRITICAL',
      from: '2026-03-01T00:00:00.000Z',
    })
    const range = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-02T00:00:00.000Z' }
    expect(toQuery({ ...range, span: '24h' }, nowMs)).toEqual(range)
    expect(toQuery({ device_id: 'd', span: 'for ever' }, nowMs)).toEqual({ device_id: 'd' })
  })

  it('are replaced as a whole by those of a view, and the open alert is closed', () => {
    const change = replaceFilters({ disposition: 'OPEN' })
    expect(change).toMatchObject({ disposition: 'OPEN', device_id: '', span: '', alert: '' })
  })

  it('take a value in and out of a list', () => {
    expect(toggleValue('', 'HIGH')).toBe('HIGH')
    expect(toggleValue('HIGH', 'LOW')).toBe('HIGH,LOW')
    expect(toggleValue('HIGH,LOW', 'HIGH')).toBe('LOW')
    expect(toggleValue('HIGH', 'HIGH')).toBe('')
  })
})
