/** The filters of the list of alerts, as the URL and the API have them. Pure. */

type Search = Record<string, string>

/** Each is a parameter of the page's URL and of the API. */
const listed = ['disposition', 'decision', 'severity', 'flag'] as const
const people = ['assignee'] as const
const ids = ['device_id', 'user_id', 'session_id'] as const
const times = ['span', 'from', 'to'] as const
export const filterNames = [...listed, ...people, ...ids, ...times] as const

export type IdFilter = (typeof ids)[number]
export const idFilters: { name: IdFilter; text: string }[] = [
  { name: 'device_id', text: 'Device' },
  { name: 'user_id', text: 'User' },
  { name: 'session_id', text: 'Session' },
]

/** The parameters that are filters, in one order, so that equal filters are equal texts. */
export function pickFilters(search: Search): Search {
  return Object.fromEntries(
    filterNames.flatMap((name) => (search[name] ? [[name, search[name]]] : [])),
  )
}

/** A change of the URL that removes every filter and sets those of a view. */
export function replaceFilters(view: Search): Search {
  return { ...Object.fromEntries(filterNames.map((name) => [name, ''])), ...view, alert: '' }
}

const hourMs = 3_600_000
const spanMs: Record<string, number> = {
  '1h': hourMs,
  '24h': 24 * hourMs,
  '7d': 168 * hourMs,
  '30d': 720 * hourMs,
}

/**
 * The query of the API.
 * @param nowMs a span ends there
 */
export function toQuery(filters: Search, nowMs: number): Record<string, string> {
  const { span, from, to, ...others } = filters
  if (from) return { ...others, from, ...(to ? { to } : {}) }
  const ms = spanMs[span ?? '']
  return ms === undefined ? others : { ...others, from: new Date(nowMs - ms).toISOString() }
}

/** Adds a value to a comma-separated list, or takes it out. */
export function toggleValue(list: string, value: string): string {
  const values = list === '' ? [] : list.split(',')
  return (values.includes(value) ? values.filter((one) => one !== value) : [...values, value]).join(
    ',',
  )
}
