/**
 * The conditions of a list of events on `telemetry`. Decisions are compared by sets of event ids: a
 * decision is never below what the edge made of the event, so an event has at least a score when
 * the edge's is that high or when it is in the set of decisions that high.
 */
import { toPlatformSql } from '#shared/core/analytics/view-sql.ts'
import { clockSkewMs } from '#shared/core/base/limits/rest-api.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import { isServerCategory, type SignalCategory } from '#shared/core/signals/signal-definition.ts'
import { findSignal } from '#shared/core/signals/signals.ts'
import type { EventFilter } from '#shared/core/telemetry/event-filters.ts'
import { toEdgeRiskSql } from '#shared/core/velocity/edge-risk.ts'
import { quoteName } from '#shared/io/clickhouse/clickhouse.ts'

/** A condition with its parameters. */
export type Conditions = { text: string; params: Record<string, unknown> }

/** Events received from an instant on and before another, in ms since 1970. */
export type Span = { fromMs: number; toMs: number }

const inTenant = 'tenant_id = {tenant:String}'

/** SQL: a column lies in a span whose ends are parameters. */
export const inSpan = `received_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
  and received_at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')`

/** SQL: a row of `decisions` may be that of an event in the span. */
export const inDecidedSpan = ({ device_id: device }: EventFilter): string =>
  `${inTenant} ${device === undefined ? '' : 'and device_id = {device:String}'}
      and received_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
      and received_at < fromUnixTimestamp64Milli({decided_to:Int64}, 'UTC')`

/** SQL: the event is one of those whose stored decision meets a condition. */
const isDecided = (condition: string, filter: EventFilter): string => `event_id in (
    select event_id from decisions
    where ${inDecidedSpan(filter)}
      and ${condition}
  )`

/** SQL: a repeat of the same bytes is known by the decider until merges remove its row. */
export const isNoRepeat = `stream_offset not in (
      select stream_offset + place from reconciliation_entries array join places as place
      where ${inTenant} and stage = 'decided'
        and hour >= toStartOfHour(fromUnixTimestamp64Milli({from:Int64}, 'UTC'))
    )`

type Condition = { text: string; params?: Record<string, unknown> }

/** SQL: the text of a signal's value, empty where the event has none. */
export function toSignalValueSql(signal: string): string {
  const [category, name] = splitSignal(signal)
  const column = isServerCategory(category) ? 'server_signals' : 'signals'
  return `ifNull(toString(${column}.${quoteName(category)}.${quoteName(name)}), '')`
}

const splitSignal = (signal: string): [category: SignalCategory, name: string] => {
  const dot = signal.indexOf('.')
  return [signal.slice(0, dot) as SignalCategory, signal.slice(dot + 1)]
}

const isBoolean = (signal: string): boolean =>
  (findSignal(...splitSignal(signal))?.type ?? 'boolean') === 'boolean'

/** SQL: the network of the connection is this one, in CIDR notation, or one within it. */
const isWithin = `if(connection_network = '', false,
  isIPAddressInRange(splitByChar('/', connection_network)[1], {network:String}))`

const hasScore = (parameter: string, filter: EventFilter): string =>
  `(${toEdgeRiskSql()} >= {${parameter}:UInt8}
    or ${isDecided(`risk_score >= {${parameter}:UInt8}`, filter)})`

/** One condition for each filter but the times, and a value, which is of its signal. */
const toCondition: {
  [Name in Exclude<keyof EventFilter, 'from' | 'to' | 'signal_value'>]: (
    value: NonNullable<EventFilter[Name]>,
    filter: EventFilter,
  ) => Condition
} = {
  device_id: (device) => ({ text: 'device_id = {device:String}', params: { device } }),
  // The devices of a user or a session are keys, and so are their events.
  user_id: (user, { device_id: device }) => ({
    text: `(user_id = {user:String} or account_id = {user:String})${
      device === undefined
        ? ` and device_id in (select device_id from user_devices
             where ${inTenant} and user_id = {user:String})`
        : ''
    }`,
    params: { user },
  }),
  session_id: (session, { device_id: device }) => ({
    text: `session_id = {session:String}${
      device === undefined
        ? ` and device_id in (select device_id from sessions
             where ${inTenant} and session_hash = cityHash64({session:String}))`
        : ''
    }`,
    params: { session },
  }),
  flag: (flags, filter) => ({
    text: `(hasAny(flags, {flags:Array(String)})
      or ${isDecided('hasAny(flags, {flags:Array(String)})', filter)})`,
    params: { flags },
  }),
  action: (actions, filter) => ({
    text: `(${actions.map((action) => toActionCondition(action, filter)).join(' or ')})`,
  }),
  signal: (signal, { signal_value: value }) => {
    if (value !== undefined) {
      return {
        text: `${toSignalValueSql(signal)} = {signal_value:String}`,
        params: { signal_value: value },
      }
    }
    if (!isBoolean(signal)) return { text: `${toSignalValueSql(signal)} != ''` }
    // No name is in both: the categories of the service are none of the client's.
    return {
      text: `(has(detected_signals, {signal:String})
      or has(detected_server_signals, {signal:String}))`,
      params: { signal },
    }
  },
  platform: (platform) => ({
    text: `${toPlatformSql('telemetry.platform')} = ${toPlatformSql('{platform:String}')}`,
    params: { platform },
  }),
  app_version: (version) => ({ text: 'app_version = {version:String}', params: { version } }),
  sdk_version: (version) => ({
    text: 'sdk_version = {sdk_version:String}',
    params: { sdk_version: version },
  }),
  country: (country) => ({ text: 'connection_country = {country:String}', params: { country } }),
  asn: (asn) => ({ text: 'connection_asn = {asn:UInt32}', params: { asn } }),
  network: (network) => ({ text: isWithin, params: { network } }),
  network_kind: (kinds) => ({
    text: 'hasAny(connection_kinds, {kinds:Array(String)})',
    params: { kinds },
  }),
  min_score: (score, filter) => ({ text: hasScore('score', filter), params: { score } }),
  max_score: (score, filter) =>
    score === 100
      ? { text: 'true' }
      : { text: `not ${hasScore('above', filter)}`, params: { above: score + 1 } },
}

/** A stored decision replaces the edge's action by the same or a higher one. */
function toActionCondition(action: Action, filter: EventFilter): string {
  const isBlocked = `(rasp_action = 'BLOCK' or ${isDecided("action = 'BLOCK'", filter)})`
  if (action === 'BLOCK') return isBlocked
  const isRaised = `(rasp_action != 'ALLOW' or ${isDecided("action != 'ALLOW'", filter)})`
  return action === 'ALLOW' ? `not ${isRaised}` : `(${isRaised} and not ${isBlocked})`
}

/** The conditions of a tenant's events in a span. */
export function toConditions(tenantId: string, filter: EventFilter, span: Span): Conditions {
  const parts: Condition[] = []
  for (const [name, make] of Object.entries(toCondition)) {
    const value = filter[name as keyof typeof toCondition]
    if (value !== undefined) parts.push(make(value as never, filter))
  }
  const texts = [inTenant, inSpan, ...parts.map(({ text }) => text)]
  return {
    text: texts.join('\n  and '),
    params: {
      tenant: tenantId,
      from: span.fromMs,
      to: span.toMs,
      // A repeat by an edge whose clock is behind is the row that is kept; the decision is that of
      // the first in the stream, which is later by the difference of the clocks at most.
      decided_to: span.toMs + clockSkewMs,
      ...Object.assign({}, ...parts.map(({ params }) => params ?? {})),
    },
  }
}
