/** The filters of the list of alerts, as the URL and the API have them. Pure. */
import {
  alertFilters,
  type FilterEntry,
  type FilterName,
  filterNames,
} from '#shared/core/alerts/alert-filters.ts'
import { spans, toBeginMs } from '../../../components/time/periods.ts'
import { toWords } from '../../../components/words.ts'

type Search = Record<string, string>

/** Each filter is a parameter of the page's URL and of the API; a span is one of the page alone. */
const names = [...filterNames, 'span']

/** Filters with a control of their own, in which values are found by typing. */
const found: readonly FilterName[] = ['flag', 'sdk_version', 'assignee']

/** Filters whose values are a few words to choose from. */
export const choiceFilters = filterNames.flatMap((name) => {
  const { takes }: FilterEntry = alertFilters[name]
  if (typeof takes === 'string' || found.includes(name)) return []
  return [{ name, text: toWords(name), words: takes }]
})

/** Filters with one value that is typed; the range of time has its own control. */
export const typedFilters = filterNames.flatMap((name) => {
  const { takes, test }: FilterEntry = alertFilters[name]
  if (typeof takes !== 'string' || found.includes(name) || test === 'page') return []
  return [{ name, text: toWords(name) }]
})

/** The parameters that are filters, in one order, so that equal filters are equal texts. */
export function pickFilters(search: Search): Search {
  return Object.fromEntries(names.flatMap((name) => (search[name] ? [[name, search[name]]] : [])))
}

/** A change of the URL that removes every filter and sets those of a view. */
export function replaceFilters(view: Search): Search {
  const none = Object.fromEntries(names.map((name) => [name, '']))
  return { ...none, ...pickFilters(view), alert: '' }
}

/**
 * The query of the API.
 * @param nowMs a span ends there
 */
export function toQuery(filters: Search, nowMs: number): Record<string, string> {
  const { span, from, to, ...others } = filters
  if (from) return { ...others, from, ...(to ? { to } : {}) }
  const ms = spans.find(([value]) => value === span)?.[2]
  if (ms === undefined) return others
  return { ...others, from: new Date(toBeginMs(ms, nowMs)).toISOString() }
}

/** Adds a value to a comma-separated list, or takes it out. */
export function toggleValue(list: string, value: string): string {
  const values = list === '' ? [] : list.split(',')
  return (values.includes(value) ? values.filter((one) => one !== value) : [...values, value]).join(
    ',',
  )
}
