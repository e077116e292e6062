/**
 * Counts the events of a list by a column: the same events, each once, and the devices that they
 * are of. Events are exact; devices are counted by sketches, exact to tens of thousands and within
 * a percent beyond. A query that would read or group too much is refused.
 */
import {
  type EventColumn,
  scoreBands,
  scoresPerBand,
  toCountedFilter,
} from '#shared/core/analytics/event-counts.ts'
import { toPlatformSql } from '#shared/core/analytics/view-sql.ts'
import {
  eventCountBytesMax,
  eventCountGroupsMax,
  eventCountMaxMs,
} from '#shared/core/base/limits/analytics.ts'
import { eventRowsReadMax } from '#shared/core/base/limits/rest-api.ts'
import { metaCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { actions } from '#shared/core/scoring/score.ts'
import type { EventFilter } from '#shared/core/telemetry/event-filters.ts'
import { toEdgeRiskSql } from '#shared/core/velocity/edge-risk.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  type Conditions,
  inDecidedSpan,
  inSpan,
  isNoRepeat,
  toConditions,
  toSignalValueSql,
} from '#shared/io/telemetry/event-filter-sql.ts'
import { createEventReader, endMs } from '#shared/io/telemetry/event-list-store.ts'

export type EventCountQuery = {
  tenantId: string
  filter: EventFilter
  by: EventColumn
  /** Values in the answer, those of most events first. */
  limit: number
}

type Count = { events: number; devices: number }

export type EventCounts = {
  /** Of all events of the filter. */
  all: Count
  /** Of those without a value. */
  none: Count
  /** Of an operator of networks the label is its name; empty of other columns. */
  values: (Count & { value: string; label: string })[]
  /** How many values there are. */
  valuesTotal: number
}

export type EventCountStore = {
  /** @throws Problem query_failed when there are too many events, or values, to count */
  countEvents: (query: EventCountQuery) => Promise<EventCounts>
}

/** SQL: the values of an event as an array; an empty text is none. */
type ToValues = (query: EventCountQuery) => string

const ofText =
  (text: string): ToValues =>
  () =>
    `[${text}]`

/** Of the event as the edge scored it, `e`, and of its decision, `d`, which is zeros without one. */
const decidedValues: { readonly [Column in EventColumn]?: string } = {
  action: `[['${actions.join("', '")}'][
    1 + greatest(toUInt8(e.rasp_action), toUInt8(d.action))
  ]]`,
  flag: 'arrayDistinct(arrayConcat(e.flags, d.flags))',
  score: `[['${scoreBands.join("', '")}'][1 + least(${scoreBands.length - 1}, intDiv(
    greatest(${toEdgeRiskSql({ score: 'e.rasp_score', flags: 'e.flags' })}, d.risk_score),
    ${scoresPerBand}
  ))]]`,
}

const ownValues: { readonly [Column in EventColumn]?: ToValues } = {
  signal: () => 'arrayDistinct(arrayConcat(detected_signals, detected_server_signals))',
  // No filter takes a longer text.
  signal_value: ({ filter: { signal } }) => {
    const value = toSignalValueSql(signal!)
    return `[if(lengthUTF8(${value}) > ${metaCharactersMax}, '', ${value})]`
  },
  app_version: ofText('app_version'),
  sdk_version: ofText('sdk_version'),
  platform: ofText(toPlatformSql('telemetry.platform')),
  country: ofText('connection_country'),
  asn: ofText("if(connection_asn = 0, '', toString(connection_asn))"),
  network_kind: () => 'arrayDistinct(connection_kinds)',
}

export function createEventCountStore(
  clickhouse: Clickhouse,
  { rowsReadMax = eventRowsReadMax, groupsMax = eventCountGroupsMax } = {},
): EventCountStore {
  const read = createEventReader(clickhouse, rowsReadMax, {
    maxMs: eventCountMaxMs,
    max_rows_to_group_by: String(groupsMax),
    group_by_overflow_mode: 'throw',
    max_memory_usage: String(eventCountBytesMax),
  })
  return {
    countEvents: async (query) => {
      const { tenantId, filter, by, limit } = query
      const { from = 0, to = endMs } = filter
      const { signal, ...counted } = toCountedFilter(by, filter)
      const conditions = toConditions(
        tenantId,
        by === 'signal_value' ? counted : { ...counted, signal },
        { fromMs: from, toMs: to },
      )
      const rows = await read<CountRow>(toSql(query, conditions), {
        ...conditions.params,
        limit: limit + 2,
      })
      return toCounts(rows, limit)
    },
  }
}

type CountRow = Count & { is_value: 0 | 1; value: string; label: string; groups: number }

// A redelivered event is the same row again, with the same offset: counting offsets costs a third of
// FINAL, and ids six times as much. Rows of releases before offsets have 0.
const eventsSql = 'groupBitmapIf(stream_offset, stream_offset > 0) + countIf(stream_offset = 0)'

/** The first row is of all events. An event without a value has the empty one. */
const toSql = (query: EventCountQuery, conditions: Conditions): string => `
  select is_value, value, toUInt32(${eventsSql}) as events, toUInt32(uniq(device_id)) as devices,
    any(label) as label, toUInt32(count() over ()) as groups
  from (
    select device_id, stream_offset, label,
      arrayJoin(arrayConcat(
        [(toUInt8(0), '')],
        arrayMap(one -> (toUInt8(1), toString(one)), if(empty(found), [''], found))
      )) as pair,
      pair.1 as is_value, pair.2 as value
    from (${toFoundSql(query, conditions)})
  )
  group by is_value, value
  order by is_value, value != '', events desc, value
  limit {limit:UInt32}`

/** SQL: the device of each event with the values that it has. */
function toFoundSql(query: EventCountQuery, { text }: Conditions): string {
  const events = `from telemetry
    prewhere tenant_id = {tenant:String} and ${inSpan}
    where ${text} and ${isNoRepeat}`
  const decided = decidedValues[query.by]
  if (decided === undefined) {
    const label = query.by === 'asn' ? 'toString(connection_organization)' : "''"
    const values = ownValues[query.by]!(query)
    return `select device_id, stream_offset, ${label} as label, ${toTexts(values)} as found ${events}`
  }
  return `select e.device_id as device_id, e.stream_offset as stream_offset, '' as label,
      ${toTexts(decided)} as found
    from (select stream_offset, device_id, flags, rasp_action, rasp_score ${events}) as e
    any left join (
      select stream_offset, flags, action, risk_score from decisions
      where ${inDecidedSpan(query.filter)} and stream_offset > 0
    ) as d on e.stream_offset = d.stream_offset`
}

/** One type for the values of all columns. */
const toTexts = (values: string): string => `cast(${values}, 'Array(String)')`

function toCounts(rows: readonly CountRow[], limit: number): EventCounts {
  const nothing = { events: 0, devices: 0 }
  const toCount = (row: CountRow | undefined): Count =>
    row === undefined ? nothing : { events: row.events, devices: row.devices }
  const values = rows.filter((row) => row.is_value === 1 && row.value !== '')
  const none = rows.find((row) => row.is_value === 1 && row.value === '')
  const groups = rows[0]?.groups ?? 0
  return {
    all: toCount(rows.find((row) => row.is_value === 0)),
    none: toCount(none),
    values: values
      .slice(0, limit)
      .map(({ value, label, events, devices }) => ({ value, label, events, devices })),
    valuesTotal: Math.max(0, groups - 1 - (none === undefined ? 0 : 1)),
  }
}
