/** The filters and the sort of the queue, as the URL and the API have them. Pure. */

import { findFlag } from '#shared/core/alerts/alert-sentence.ts'
import { decisions } from '#shared/core/alerts/dispositions.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'

type Search = Record<string, string>

/** What is shown without a parameter: what is open. Of all cases the URL says `all`. */
export const usualState = 'OPEN'
export const usualSort = 'due'

/** The states that the queue shows, each with the count of it. */
export const states = [
  { value: usualState, text: 'Open', count: 'open' },
  { value: 'SNOOZED', text: 'Snoozed', count: 'snoozed' },
  { value: 'CLOSED', text: 'Closed', count: 'closed' },
] as const

export const sorts: readonly [value: string, text: string][] = [
  [usualSort, 'Due first'],
  ['risk', 'Highest risk'],
  ['latest', 'Latest alert'],
]

type CountName = (typeof states)[number]['count'] | 'breached'

/** The counts whose sum is the length of the list. */
export function countNames({ state = usualState, breached }: Search): CountName[] {
  if (breached === 'true') return ['breached']
  const chosen = state.split(',')
  return states
    .filter(({ value }) => state === 'all' || chosen.includes(value))
    .map(({ count }) => count)
}

/** Filters whose values are words to choose from. */
export const choiceFilters = [
  { name: 'action', text: 'Action', values: decisions.map((word) => [word, word] as const) },
  {
    name: 'flag',
    text: 'Flag',
    values: flagCodes.map((code) => [code, findFlag(code)?.name ?? code] as const),
  },
  {
    name: 'subject_kind',
    text: 'Subject',
    values: [
      ['phone', 'Phones'],
      ['device', 'Devices'],
      ['user', 'Users'],
    ] as const,
  },
] as const

/** Filters with one value that is typed. */
export const typedFilters = [
  { name: 'q', text: 'Phone, device, user or case' },
  { name: 'min_risk', text: 'Min risk' },
] as const

/** Filters that a link sets, and that are taken away here. */
export const linkedFilters = [
  { name: 'begun_from', text: 'Begun since' },
  { name: 'begun_to', text: 'Begun before' },
] as const

/** Filters beside the state, which the counts are of as well. */
const narrowing = [
  ...(['action', 'min_risk', 'flag', 'assignee', 'subject_kind', 'q'] as const),
  ...(['begun_from', 'begun_to'] as const),
]
const names = ['state', 'breached', 'sort', ...narrowing]

/** The parameters that are filters, in one order, so that equal filters are equal texts. */
export const pickFilters = (search: Search): Search =>
  Object.fromEntries(names.flatMap((name) => (search[name] ? [[name, search[name]]] : [])))

/** A change of the URL that removes every filter and sets those of a view. */
export const replaceFilters = (view: Search): Search => ({
  ...Object.fromEntries(names.map((name) => [name, ''])),
  ...pickFilters(view),
  case: '',
})

/** Whether other cases may be there than those that are shown. */
export const isNarrowed = (filters: Search): boolean =>
  Object.keys(filters).some((name) => name !== 'sort')

/** The query of the list. */
export function toListQuery(filters: Search): Search {
  const { state = usualState, ...others } = filters
  // What is overdue is open or snoozed.
  if (filters.breached === 'true') return others
  return state === 'all' ? others : { ...others, state }
}

/** The query of the counts, which have every state. */
export const toCountsQuery = (filters: Search): Search =>
  Object.fromEntries(narrowing.flatMap((name) => (filters[name] ? [[name, filters[name]]] : [])))

/** What the next case is chosen from: the same queue, whose open cases alone are handed out. */
export function toNextBody(filters: Search): { filter: Search; sort?: 'due' | 'risk' | 'latest' } {
  const { state: _, sort, ...filter } = filters
  return sort === 'risk' || sort === 'latest' ? { filter, sort } : { filter }
}
