// The filters of the list of events: in the address, in SQL, and behind its counts.
import { describe, expect, it } from 'vitest'
import { eventColumns, leavesOut, toListFilter } from '#shared/core/analytics/event-counts.ts'
import { eventFilterFields } from '#shared/core/http/event-schemas.ts'
import {
  chosenFilters,
  listTypedFilters,
  pickFilters,
  replaceFilters,
} from '../../../services/console/web/pages/events/event-query.ts'
import { toDevicesSql, toEventsSql } from '../../../services/console/web/pages/events/event-sql.ts'

const range = { from: '2026-03-01T00:00:00.000Z', to: '2026-03-02T00:00:00.000Z' }
const signal = 'root.su_binary'

describe('the filters of the list of events', () => {
  it('are those of the API, each with a control', () => {
    const shown = [...chosenFilters, ...listTypedFilters({ signal })].map(({ name }) => name)
    expect([...shown, 'from', 'to'].sort()).toEqual(Object.keys(eventFilterFields).sort())
  })

  it('have a value of a signal only beside the signal', () => {
    expect(pickFilters({ signal_value: 'false', by: 'flag' })).toEqual({})
    expect(pickFilters({ signal, signal_value: 'false' })).toEqual({
      signal,
      signal_value: 'false',
    })
    expect(replaceFilters({ signal })).toMatchObject({ signal, signal_value: '', flag: '' })
  })

  it('are each in the query that they open, with their values as parameters', () => {
    const values: Record<string, string> = {
      asn: 'AS64500',
      country: 'de',
      platform: 'Android 14',
      min_score: '5',
      max_score: '9',
      signal,
      network: '203.0.113.0/24',
    }
    const filters = Object.fromEntries(
      Object.keys(eventFilterFields).flatMap((name) =>
        ['from', 'to', 'signal_value'].includes(name) ? [] : [[name, values[name] ?? 'x']],
      ),
    )
    const { sql, parameters } = toEventsSql(filters, range)
    for (const name of Object.keys(filters)) expect(sql).toContain(`{${name}:`)
    expect(sql).toContain('has(arrayConcat(detected_signals, detected_server_signals), {signal:')
    expect(sql).toContain('limit 100')
    expect(parameters).toEqual({
      ...filters,
      asn: '64500',
      country: 'DE',
      platform: 'android',
      since: range.from,
      until: range.to,
    })
    expect(toEventsSql({}, range, null).sql).not.toContain('limit')
    expect(toDevicesSql(filters, { ...range, to: null }).parameters).not.toHaveProperty('until')
  })

  it('compare a value, also of a signal that the service saw, and of one that is no boolean', () => {
    const conditionsOf = (filters: Record<string, string>) => toEventsSql(filters, range).sql
    const value = (column: string) => `toString(getSubcolumn(${column}, {signal:String}))`
    expect(conditionsOf({ signal, signal_value: 'false' })).toContain(
      `${value('signals')} = {signal_value:String}`,
    )
    expect(conditionsOf({ signal: 'connection.country' })).toContain(
      `${value('server_signals')} != ''`,
    )
  })
})

describe('a count of events', () => {
  it('opens the list with its value in addition to the other filters', () => {
    const filter = { country: 'DE', flag: 'ROOTED', min_score: '50' }
    expect(toListFilter('platform', 'ios', filter)).toEqual({ ...filter, platform: 'ios' })
    expect(toListFilter('score', '40-59', filter)).toEqual({ ...filter, max_score: '59' })
    expect(toListFilter('score', '80-100', { max_score: '90' })).toEqual({
      min_score: '80',
      max_score: '90',
    })
  })

  it('replaces the filter by a column of which an event has several values', () => {
    const filter = { flag: 'ROOTED,VPN_SUSPECTED', signal, signal_value: 'false' }
    expect(toListFilter('flag', 'EMULATOR', filter)).toEqual({ ...filter, flag: 'EMULATOR' })
    expect(toListFilter('signal', 'root.magisk', filter)).toEqual({
      flag: filter.flag,
      signal: 'root.magisk',
    })
    const leaving = eventColumns.filter((by) => leavesOut(by, { ...filter, network_kind: ['vpn'] }))
    expect(leaving).toEqual(['flag', 'signal', 'signal_value', 'network_kind'])
  })
})
