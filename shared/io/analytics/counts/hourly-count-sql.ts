/**
 * SQL of what is counted for the overview and the fleet page: from events, and from the counts of
 * whole hours. Both have the same columns, so a period is read from both and summed up. Only
 * numbers of ours become text.
 */
import type { HourlyCoverage } from '#shared/core/analytics/hourly-coverage.ts'
import { hourMs, type Span } from '#shared/core/base/instants.ts'
import { clockSkewMs } from '#shared/core/base/limits/rest-api.ts'

export const hourlySubjects = ['version', 'flag', 'signal'] as const
export type HourlySubject = (typeof hourlySubjects)[number]

/** For queries of such rows: they are few and large, and threads share what they are told to. */
export const hourlyQuery = {
  max_threads: 2,
  merge_tree_min_rows_for_concurrent_read: '1',
  merge_tree_min_bytes_for_concurrent_read: '1',
} as const

/** Counting a day of all tenants reads a month of one column; merging sketches takes memory. */
export const countSettings = {
  max_threads: 1,
  max_execution_time: 600,
  max_bytes_before_external_group_by: String(2 * 1024 * 1024 * 1024),
} as const

/** What to count: events of one tenant, or of all. */
export type Counted = {
  /** SQL: a condition on `tenant_id`. */
  inTenant: string
  spans: readonly Span[]
  /** SQL: the point in time of a row, from the instant in the column of this name. */
  toAt: (column: string) => string
}

const instant = (ms: number): string => `fromUnixTimestamp64Milli(${Math.trunc(ms)}, 'UTC')`

/** SQL: a column lies in one of the spans. */
const inSpans = (column: string, spans: readonly Span[]): string =>
  `(${
    spans
      .map(
        ({ fromMs, toMs }) => `(${column} >= ${instant(fromMs)} and ${column} < ${instant(toMs)})`,
      )
      .join(' or ') || 'false'
  })`

/**
 * The events, each once: FINAL leaves one row of a redelivered event, and the decider knows the
 * offsets of later copies of the same bytes, which are no events.
 */
const events = ({ inTenant, spans }: Counted): string => `
  from telemetry final
  prewhere ${inTenant} and ${inSpans('received_at', spans)}
  where (tenant_id, stream_offset) not in (
    select tenant_id, stream_offset + place from reconciliation_entries array join places as place
    where ${inTenant} and stage = 'decided'
      and ${inSpans(
        'hour',
        spans.map(({ fromMs, toMs }) => ({ fromMs: fromMs - hourMs, toMs })),
      )}
  )`

/** A stored decision replaces the edge's action by the same or a higher one. */
const isDecided = ({ inTenant, spans }: Counted, condition: string): string =>
  `(tenant_id, event_id) in (
    select tenant_id, event_id from decisions
    where ${inTenant} and ${condition}
      and ${inSpans(
        'received_at',
        spans.map((span) => ({ ...span, toMs: span.toMs + clockSkewMs })),
      )}
  )`

/** SQL of the rows of a subject, counted from events. */
export function toRowsOfEvents(subject: HourlySubject, counted: Counted): string {
  return ofEvents[subject](counted)
}

const ofEvents: Record<HourlySubject, (counted: Counted) => string> = {
  version: (counted) => `
  select tenant_id, ${counted.toAt('received_at')} as at, platform, sdk_version, '' as name,
    min(received_at) as first_at, max(received_at) as last_at, count() as events,
    countIf(is_raised and not is_blocked) as review, countIf(is_blocked) as block,
    countIf(connection_network != '') as measured,
    countIf(hasAny(connection_kinds, ['vpn', 'proxy', 'relay', 'tor'])) as anonymous,
    countIf(has(connection_kinds, 'hosting')) as hosting,
    groupUniqArrayIf(connection_country, connection_country != '') as countries,
    uniqState(device_id) as devices, uniqState(device_id, session_id) as sessions
  from (
    select tenant_id, received_at, platform, sdk_version, device_id, session_id,
      connection_network, connection_kinds, connection_country,
      rasp_action = 'BLOCK' or ${isDecided(counted, "action = 'BLOCK'")} as is_blocked,
      rasp_action != 'ALLOW' or ${isDecided(counted, "action != 'ALLOW'")} as is_raised
    ${events(counted)}
  )
  group by tenant_id, at, platform, sdk_version`,
  // Of the decision: it has the flags of the edge, and those that are raised by what is known.
  flag: (counted) => `
  select tenant_id, ${counted.toAt('received_at')} as at, flag as name,
    uniqExact(cityHash64(event_id)) as events, uniqState(device_id) as devices
  from (
    select tenant_id, event_id, device_id, received_at, flags ${events(counted)}
    union all
    select tenant_id, event_id, device_id, received_at, flags from decisions
    where ${counted.inTenant} and ${inSpans('received_at', counted.spans)}
  )
  array join flags as flag
  group by tenant_id, at, name`,
  signal: (counted) => `
  select tenant_id, ${counted.toAt('received_at')} as at, platform, sdk_version, signal as name,
    count() as events, uniqState(device_id) as devices
  from (
    select tenant_id, received_at, platform, sdk_version, device_id, detected_signals,
      detected_server_signals
    ${events(counted)}
  )
  array join arrayConcat(detected_signals, detected_server_signals) as signal
  group by tenant_id, at, platform, sdk_version, name`,
}

/** The columns of each subject in `hourly_counts`, `at` being the hour. */
export const hourlyColumns: Record<HourlySubject, readonly string[]> = {
  version: [
    ...['platform', 'sdk_version', 'first_at', 'last_at', 'events', 'review', 'block', 'measured'],
    ...['anonymous', 'hosting', 'countries', 'devices', 'sessions'],
  ],
  flag: ['name', 'events', 'devices'],
  signal: ['platform', 'sdk_version', 'name', 'events', 'devices'],
}

const countTables = {
  day: { counts: 'daily_counts', marks: 'daily_marks' },
  hour: { counts: 'hourly_counts', marks: 'hourly_marks' },
} as const

/** SQL from `from`: the counts in force of {tenant:String}. */
export function countsInForce(
  step: 'day' | 'hour',
  subject: HourlySubject | 'point',
  spans: readonly Span[],
): string {
  const { counts, marks } = countTables[step]
  return `from ${counts}
      where tenant_id = {tenant:String} and subject = '${subject}' and ${inSpans(step, spans)}
        and (${step}, counted_at) in (
          select ${step}, max(counted_at) from ${marks}
          where tenant_id in ('', {tenant:String}) and ${inSpans(step, spans)}
          group by ${step}
        )`
}

/** SQL: how a column of a day comes from those of its hours; a number is their sum. */
const merges: Record<string, string> = {
  first_at: 'min',
  last_at: 'max',
  countries: 'groupUniqArrayArray',
  devices: 'uniqMergeState',
  sessions: 'uniqMergeState',
}
const keys = ['platform', 'sdk_version', 'name']

/**
 * SQL of the rows of a subject in a day, from the hours in force of {tenant:String}, or of every
 * tenant where it is empty: the tenant and the columns of the subject.
 * @param inDay SQL: the hours of the day
 */
export function toRowsOfDay(subject: HourlySubject, inDay: string): string {
  const columns = hourlyColumns[subject]
  const ofKeys = columns.filter((column) => keys.includes(column))
  const values = columns
    .filter((column) => !keys.includes(column))
    .map((column) => `${merges[column] ?? 'sum'}(rows.${column}) as ${column}`)
  return `
  select tenant_id, ${[...ofKeys, ...values].join(', ')}
  ${rowsInForce(subject, inDay)}
  group by ${['tenant_id', ...ofKeys].join(', ')}`
}

export const pointColumns = [
  'name',
  'platform',
  'sdk_version',
  'events',
  'device_count',
  'session_count',
]

/** The names of points by the bits of `grouping`: a column that a point is not about has 1. */
const pointNames = "['version', 'platform', '', 'all'][grouping(platform, sdk_version) + 1]"

/** SQL of the points of a day: the tenant and `pointColumns`. @param inDay as above */
export function toPointsOfDay(inDay: string): string {
  return `
  select tenant_id, ${pointNames} as name, platform, sdk_version, sum(events) as events,
    uniqMerge(devices) as device_count, uniqMerge(sessions) as session_count
  from (${toRowsOfDay('version', inDay)})
  group by grouping sets
    ((tenant_id), (tenant_id, platform), (tenant_id, platform, sdk_version))`
}

function rowsInForce(subject: HourlySubject, inDay: string): string {
  const inTenant = "({tenant:String} = '' or tenant_id = {tenant:String})"
  return `from hourly_counts as rows
  left join (
    select hour, max(counted_at) as of_all from hourly_marks
    where tenant_id = '' and ${inDay} group by hour
  ) as marks_of_all using (hour)
  left join (
    select tenant_id, hour, max(counted_at) as own from hourly_marks
    where tenant_id != '' and ${inTenant} and ${inDay} group by tenant_id, hour
  ) as own_marks using (tenant_id, hour)
  where ${inTenant} and subject = '${subject}' and ${inDay}
    and counted_at = greatest(of_all, own)`
}

/**
 * SQL of the rows of a subject over a period of {tenant:String}: `at` and the columns of the
 * subject.
 * @param toAt SQL: the point in time of a row, from the instant in the column of this name
 */
export function toHourlyRows(
  subject: HourlySubject,
  { days, hours, events: gaps }: HourlyCoverage,
  toAt: (column: string) => string,
): string {
  const columns = hourlyColumns[subject].join(', ')
  const inTenant = 'tenant_id = {tenant:String}'
  const ofCounts = (step: 'day' | 'hour', spans: readonly Span[]) =>
    `select ${toAt(step)} as at, ${columns} ${countsInForce(step, subject, spans)}`
  const parts: string[] = []
  if (days.length > 0) parts.push(ofCounts('day', days))
  if (hours.length > 0) parts.push(ofCounts('hour', hours))
  if (gaps.length > 0 || parts.length === 0) {
    parts.push(`select at, ${columns}
      from (${toRowsOfEvents(subject, { inTenant, spans: gaps, toAt })})`)
  }
  return parts.join('\n    union all\n    ')
}
