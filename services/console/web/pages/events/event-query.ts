/** The filters of the list of events: in the URL, in the API and in SQL. Pure. */
import { actions } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'

type Search = Record<string, string>

/** Filters of several values, as the API has them with commas. */
export const chosenFilters = [
  { name: 'action', text: 'Action', words: actions },
  { name: 'flag', text: 'Flag', words: flagCodes },
] as const

export const typedFilters = [
  { name: 'device_id', text: 'Device' },
  { name: 'user_id', text: 'User or account' },
  { name: 'session_id', text: 'Session' },
  { name: 'signal', text: 'Signal' },
  { name: 'platform', text: 'Platform' },
  { name: 'app_version', text: 'App version' },
  { name: 'min_score', text: 'Min score' },
] as const

const names = [...chosenFilters, ...typedFilters].map(({ name }) => name)

/** Those that are set. */
export const pickFilters = (search: Search): Search =>
  Object.fromEntries(names.flatMap((name) => (search[name] ? [[name, search[name]]] : [])))

/** Conditions on the view `events`, with the value as a parameter of the query. */
const conditions: Record<(typeof names)[number], (parameter: string) => string> = {
  action: (list) => `has(splitByChar(',', ${list}), action)`,
  flag: (list) => {
    const isAmong = `hasAny(flags, splitByChar(',', ${list}))`
    return `(${isAmong} or event_id in (
    select event_id
    from decisions
    where ${isAmong}
  ))`
  },
  device_id: (id) => `device_id = ${id}`,
  user_id: (id) => `(user_id = ${id} or account_id = ${id})`,
  session_id: (id) => `session_id = ${id}`,
  signal: (path) => `has(arrayConcat(detected_signals, detected_server_signals), ${path})`,
  platform: (name) => `platform = ${name}`,
  app_version: (name) => `app_version = ${name}`,
  min_score: (score) => `risk_score >= toUInt8(${score})`,
}

/**
 * The list as a query over the analytics views, for Explore: its text and its parameters.
 * @param range from `useTimeRange`
 */
export function toEventsSql(
  filters: Search,
  range: { from: string; to: string | null },
): { sql: string; parameters: Search } {
  const own = names.flatMap((name) => {
    const value = filters[name]
    return value ? [{ name, value }] : []
  })
  const times = [
    'received_at >= parseDateTime64BestEffort({since:String}, 3)',
    ...(range.to === null ? [] : ['received_at < parseDateTime64BestEffort({until:String}, 3)']),
  ]
  const where = [...times, ...own.map(({ name }) => conditions[name](`{${name}:String}`))]
  const sql = `select received_at, action, risk_score, device_id, user_id, platform, app_version, event_id
from events
where ${where.join('\n  and ')}
order by received_at desc
limit 100`
  const parameters = {
    since: range.from,
    ...(range.to === null ? {} : { until: range.to }),
    ...Object.fromEntries(own.map(({ name, value }) => [name, value])),
  }
  return { sql, parameters }
}
