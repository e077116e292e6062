/** The list of events as SQL over the analytics views. With the catalog, so it is loaded late. */
import { toPlatform } from '#shared/core/devices/platform-name.ts'
import { isServerCategory, type SignalCategory } from '#shared/core/signals/signal-definition.ts'
import { findSignal } from '#shared/core/signals/signals.ts'
import { type names, pickFilters } from './event-query.ts'

type Search = Record<string, string>

/** A condition on the view `events`, and the parameters that it names beside its own. */
type Condition = (value: string, filters: Search) => { text: string; value?: string }

const toValue = (path: string): string => {
  const isServer = isServerCategory(path.slice(0, path.indexOf('.')))
  return `toString(getSubcolumn(${isServer ? 'server_signals' : 'signals'}, {signal:String}))`
}

function isBoolean(path: string): boolean {
  const dot = path.indexOf('.')
  const category = path.slice(0, dot) as SignalCategory
  return (findSignal(category, path.slice(dot + 1))?.type ?? 'boolean') === 'boolean'
}

const conditions: Record<(typeof names)[number], Condition> = {
  action: () => ({ text: `has(splitByChar(',', {action:String}), action)` }),
  flag: () => {
    const isAmong = `hasAny(flags, splitByChar(',', {flag:String}))`
    return {
      text: `(${isAmong} or event_id in (
    select event_id
    from decisions
    where ${isAmong}
  ))`,
    }
  },
  network_kind: () => ({
    text: `hasAny(connection_kinds, splitByChar(',', {network_kind:String}))`,
  }),
  device_id: () => ({ text: 'device_id = {device_id:String}' }),
  user_id: () => ({ text: '(user_id = {user_id:String} or account_id = {user_id:String})' }),
  session_id: () => ({ text: 'session_id = {session_id:String}' }),
  signal: (path, { signal_value: value }) => {
    if (value) return { text: `${toValue(path)} = {signal_value:String}` }
    return {
      text: isBoolean(path)
        ? 'has(arrayConcat(detected_signals, detected_server_signals), {signal:String})'
        : `${toValue(path)} != ''`,
    }
  },
  // In the condition of its signal.
  signal_value: () => ({ text: '' }),
  platform: (name) => ({ text: 'platform = {platform:String}', value: toPlatform(name) }),
  app_version: () => ({ text: 'app_version = {app_version:String}' }),
  sdk_version: () => ({ text: 'sdk_version = {sdk_version:String}' }),
  country: (code) => ({
    text: 'connection_country = {country:String}',
    value: code.trim().toUpperCase(),
  }),
  asn: (asn) => ({
    text: 'connection_asn = {asn:UInt32}',
    value: asn.trim().replace(/^as/i, ''),
  }),
  network: () => ({
    text: `if(connection_network = '', false,
    isIPAddressInRange(splitByChar('/', connection_network)[1], {network:String}))`,
  }),
  min_score: () => ({ text: 'risk_score >= {min_score:UInt8}' }),
  max_score: () => ({ text: 'risk_score <= {max_score:UInt8}' }),
}

/** @param range from `useTimeRange` */
type Range = { from: string; to: string | null }

export type EventsSql = { sql: string; parameters: Search }

const columns =
  'received_at, action, risk_score, device_id, user_id, platform, app_version, sdk_version, ' +
  'connection_country, connection_asn, session_id, event_id'

/** The list as a query over the analytics views: its text and its parameters. */
export function toEventsSql(filters: Search, range: Range, limit: number | null = 100): EventsSql {
  const { where, parameters } = toWhere(filters, range)
  const sql = `select ${columns}
from events
where ${where}
order by received_at desc, event_id desc${limit === null ? '' : `\nlimit ${limit}`}`
  return { sql, parameters }
}

/** The devices of the list: a cohort to go on with. */
export function toDevicesSql(filters: Search, range: Range): EventsSql {
  const { where, parameters } = toWhere(filters, range)
  const sql = `select device_id, count() as events, max(risk_score) as highest_risk,
  min(received_at) as first_at, max(received_at) as last_at
from events
where ${where}
group by device_id
order by events desc, device_id
limit 1000`
  return { sql, parameters }
}

function toWhere(filters: Search, range: Range): { where: string; parameters: Search } {
  const given = Object.entries(pickFilters(filters)).map(([name, value]) => ({
    name,
    value,
    condition: conditions[name as (typeof names)[number]](value, filters),
  }))
  const where = [
    'received_at >= parseDateTime64BestEffort({since:String}, 3)',
    ...(range.to === null ? [] : ['received_at < parseDateTime64BestEffort({until:String}, 3)']),
    ...given.flatMap(({ condition: { text } }) => (text === '' ? [] : [text])),
  ]
  const parameters = {
    since: range.from,
    ...(range.to === null ? {} : { until: range.to }),
    ...Object.fromEntries(
      given.map(({ name, value, condition }) => [name, condition.value ?? value]),
    ),
  }
  return { where: where.join('\n  and '), parameters }
}
