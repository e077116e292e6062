// Converts the filters of the alert list between the page's URL and the API.
import { describe, expect, it } from 'vitest'
import { filterNames } from '#shared/core/alerts/alert-filters.ts'
import {
  choiceFilters,
  pickFilters,
  replaceFilters,
  toggleValue,
  toQuery,
  typedFilters,
} from '../../../services/console/web/pages/alerts/filters/filter-values.ts'

const nowMs = Date.UTC(2026, 2, 2)

describe('the filters of the list', () => {
  it('are read from the URL in one order; other parameters are ignored', () => {
    const picked = pickFilters({ flag: 'ROOTED', alert: 'alr_1', disposition: 'OPEN', live: 'off' })
    expect(JSON.stringify(picked)).toBe('{"disposition":"OPEN","flag":"ROOTED"}')
  })

  it('are all read, also those that the bar shows only once they are set', () => {
    const search = Object.fromEntries(filterNames.map((name) => [name, 'x']))
    expect(pickFilters(search)).toEqual(search)
    const shown = [...choiceFilters, ...typedFilters].map(({ name }) => name)
    const withOwnControl = ['flag', 'sdk_version', 'assignee', 'from', 'to'] as const
    expect([...shown, ...withOwnControl].sort()).toEqual([...filterNames].sort())
    expect(typedFilters).toContainEqual({ name: 'min_score', text: 'Min score' })
  })

  it('become parameters of the API, with a time span as its start', () => {
    expect(toQuery({ severity: 'HIGH,CRITICAL', span: '24h' }, nowMs)).toEqual({
      severity: 'HIGH,CRITICAL',
      from: '2026-03-01T00:00:00.000Z',
    })
    const range = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-02T00:00:00.000Z' }
    expect(toQuery({ ...range, span: '24h' }, nowMs)).toEqual(range)
    expect(toQuery({ device_id: 'd', span: 'for ever' }, nowMs)).toEqual({ device_id: 'd' })
  })

  it('are all replaced by those of a view, which also closes the open alert', () => {
    const change = replaceFilters({ disposition: 'OPEN' })
    expect(change).toMatchObject({ disposition: 'OPEN', device_id: '', span: '', alert: '' })
  })

  it('add a value to a list and remove it', () => {
    expect(toggleValue('', 'HIGH')).toBe('HIGH')
    expect(toggleValue('HIGH', 'LOW')).toBe('HIGH,LOW')
    expect(toggleValue('HIGH,LOW', 'HIGH')).toBe('LOW')
    expect(toggleValue('HIGH', 'HIGH')).toBe('')
  })
})
