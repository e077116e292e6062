// Filters and words of the pages for cases.
import { describe, expect, it } from 'vitest'
import { nameFlags } from '#shared/core/alerts/alert-sentence.ts'
import { toQueueFilter } from '../../../services/console/overview/open-cases.ts'
import { toDueState, toMoneyText } from '../../../services/console/web/pages/case/case-words.ts'
import {
  countNames,
  isNarrowed,
  pickFilters,
  replaceFilters,
  toCountsQuery,
  toListQuery,
  toNextBody,
} from '../../../services/console/web/pages/cases/filters/filter-values.ts'

describe('the filters of the queue', () => {
  it('begin with what is open; an address asks for another state, or for all', () => {
    expect(toListQuery({})).toEqual({ state: 'OPEN' })
    expect(toListQuery({ state: 'CLOSED', flag: 'ROOTED' })).toEqual({
      state: 'CLOSED',
      flag: 'ROOTED',
    })
    expect(toListQuery({ state: 'all' })).toEqual({})
  })

  it('find what is overdue among open and snoozed cases, as its count has it', () => {
    expect(toListQuery({ breached: 'true' })).toEqual({ breached: 'true' })
    expect(countNames({ breached: 'true' })).toEqual(['breached'])
  })

  it('name the counts that the list is as long as', () => {
    expect(countNames({})).toEqual(['open'])
    expect(countNames({ state: 'OPEN,SNOOZED' })).toEqual(['open', 'snoozed'])
    expect(countNames({ state: 'all' })).toEqual(['open', 'snoozed', 'closed'])
    expect(toCountsQuery({ state: 'CLOSED', sort: 'risk', q: 'a' })).toEqual({ q: 'a' })
  })

  it('of a link from the overview are of the list and of its counts', () => {
    const search = { begun_from: '2026-03-01T00:00:00.000Z', assignee: 'none' }
    expect(toListQuery(pickFilters(search))).toEqual({ ...search, state: 'OPEN' })
    expect(toCountsQuery(pickFilters(search))).toEqual(search)
    expect(toQueueFilter({ assignee: 'none', sort: 'risk' })).toEqual({ assignee: 'none' })
    expect(toQueueFilter({ state: 'CLOSED' })).toBeNull()
    expect(toQueueFilter({ no_longer: 'a filter' })).toBeNull()
  })

  it('hand out the next case of the same queue, in the same order', () => {
    const filters = { state: 'CLOSED', action: 'BLOCK', assignee: 'me', sort: 'risk' }
    expect(toNextBody(filters)).toEqual({
      filter: { action: 'BLOCK', assignee: 'me' },
      sort: 'risk',
    })
    expect(toNextBody({ sort: 'name' })).toEqual({ filter: {} })
  })

  it('of a view take the place of all others, and of the case that is open', () => {
    const change = replaceFilters({ action: 'BLOCK', other: 'x' })
    expect(change).toMatchObject({ action: 'BLOCK', state: '', q: '', case: '' })
    expect(change).not.toHaveProperty('other')
    expect(pickFilters({ q: '', action: 'BLOCK', case: 'cas_1' })).toEqual({ action: 'BLOCK' })
    expect([isNarrowed({ sort: 'risk' }), isNarrowed({ q: 'a' })]).toEqual([false, true])
  })
})

describe('a case in words', () => {
  it('is overdue from its due time on, and urgent in the hour before', () => {
    const due = '2026-11-25T14:00:00.000Z'
    const at = (minutes: number) => toDueState(due, Date.parse(due) + minutes * 60_000)
    expect([at(-61), at(-60), at(-1), at(0), at(1)]).toEqual([
      'later',
      'urgent',
      'urgent',
      'overdue',
      'overdue',
    ])
  })

  it('names flags for people, and one that it does not know by its code', () => {
    expect(nameFlags(['HOOKING_DETECTED', 'constructor'])).toBe('Code hooking, constructor')
  })

  it('says what was lost in each currency', () => {
    expect(toMoneyText([])).toBe('')
    expect(
      toMoneyText([
        { amount: '129.90', currency: 'EUR' },
        { amount: '40', currency: 'USD' },
      ]),
    ).toBe('129.90 EUR, 40 USD')
  })
})
