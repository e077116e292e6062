/**
 * Reads the reconciliation: the numbers of every hour from the view, and, where they differ, the
 * ids of what is missing. A row that a repeat of the same bytes has replaced is found by its
 * event's id and is not missing.
 */
import { type ClickHouseSettings, SettingsMap } from '@clickhouse/client'
import { fromEventIdBytes } from '#shared/core/base/ids.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  findReconciliationDifferences,
  type ReconciliationDifference,
  type ReconciliationHour,
  reconciliationHourMs,
} from '#shared/core/reconciliation/reconciliation.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** A difference with some of the ids that it concerns. */
export type NamedDifference = ReconciliationDifference & {
  /** Ids of events, of alerts, or of the alerts of deliveries; at most `namedMax`. */
  ids: string[]
}
type NamedHour = ReconciliationHour & { differences: NamedDifference[] }

type ReconciliationSpan = {
  /** Left out for all tenants. */
  tenantId?: string
  fromMs: number
  toMs: number
}

export type Ledger = {
  hours: NamedHour[]
  /** Everything decided until then is compared; 0 before the first comparison. */
  asOfMs: number
}

export type ReconciliationStore = {
  /** The hours of a span with any numbers, the latest first. */
  readReconciliation: (span: ReconciliationSpan) => Promise<Ledger>
  /** The number of messages between two offsets of a stream without an entry. */
  countUnknownMessages: (span: {
    stream: number
    from: number
    to: number
    step: number
  }) => Promise<number>
  /**
   * The offset of the first message of a stream with an event since an instant; null without any.
   */
  readFirstStreamOffset: (stream: number, sinceMs: number) => Promise<number | null>
}

/** Ids shown with a difference. */
const namedMax = 10
/** How long after its event an alert may be raised: the stream keeps events for three days. */
const alertLateMs = 4 * dayMs
/** Rows that are looked up by event id; further ones count as missing. */
const lookedUpMax = 1_000

/** @param analytics the database of the views */
export function createReconciliationStore(
  clickhouse: Clickhouse,
  analytics: string,
): ReconciliationStore {
  const read: Read = async <Row>(
    query: string,
    params: Record<string, unknown>,
    settings: ClickHouseSettings = {},
  ): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: params,
      clickhouse_settings: settings,
      use_multipart_params_auto: true,
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  return {
    readReconciliation: async (span) => {
      const marks = await read<[stream: number, atMs: number, end: number]>(endsSql, {})
      const ends = new Map(marks.map(([stream, , end]) => [stream, end]))
      const hours = (
        await read<HourRow>(hoursSql(analytics, span), toParams(span), toBounds(span))
      ).map(toHour)
      const named: NamedHour[] = []
      for (const hour of hours) {
        named.push(await nameHour(read, hour, ends.get(hour.stream) ?? 0))
      }
      return { hours: named, asOfMs: Math.max(0, ...marks.map(([, atMs]) => atMs)) }
    },
    countUnknownMessages: async ({ stream, from, to, step }) => {
      const [row] = await read<[number]>(
        `select uniqExact(stream_offset) from reconciliation_entries
         where stage = 'stored' and stream = {stream:UInt8}
           and stream_offset >= {from:UInt64} and stream_offset < {to:UInt64}`,
        { stream, from, to },
      )
      return Math.max(0, (to - from) / step - row![0])
    },
    readFirstStreamOffset: async (stream, sinceMs) => {
      const [row] = await read<[number, number]>(
        `select min(stream_offset), count() from reconciliation_entries
         where stage = 'stored' and stream = {stream:UInt8}
           and hour >= fromUnixTimestamp({since:Int64})
           and stream_offset > (select max(stream_offset) from reconciliation_start)`,
        { stream, since: Math.floor(sinceMs / 1_000) },
      )
      return row![1] === 0 ? null : row![0]
    },
  }
}

type Read = <Row>(
  query: string,
  params: Record<string, unknown>,
  settings?: ClickHouseSettings,
) => Promise<Row[]>

const endsSql = `select stream, toUnixTimestamp64Milli(max(at)), max(stream_offset)
  from reconciliation_watermarks
  where at <= (select max(replicated_at) from replication_rounds)
  group by stream`

type HourRow = [tenantId: string, hourSeconds: number, ...counts: number[]]
type HourOfStream = ReconciliationHour & { stream: number }

const countColumns = [
  ...['accepted', 'stored', 'repeats', 'refused', 'erased', 'rows', 'decided', 'alerts_due'],
  ...['alerts', 'deliveries', 'attempted', 'delivered', 'in_flight', 'accepted_missing'],
  ...['rows_missing', 'decisions_missing', 'alerts_missing', 'deliveries_missing'],
  ...['alerts_unexplained', 'toUInt8(expired)', 'stream'],
]

const hoursSql = (analytics: string, { tenantId }: ReconciliationSpan): string =>
  `select tenant_id, toUnixTimestamp(hour), ${countColumns.join(', ')}
   from \`${analytics}\`.reconciliation
   where hour >= fromUnixTimestamp({from:Int64}) and hour < fromUnixTimestamp({to:Int64})
     ${tenantId === undefined ? '' : 'and tenant_id = {tenant:String}'}
   order by hour desc, tenant_id`

/**
 * Limits what a query about some hours reads of each table below the view, so its cost does not
 * grow with the history. An alert may be raised days after its event, so a wider range is read for
 * it.
 */
function toBounds({ fromMs, toMs }: ReconciliationSpan): ClickHouseSettings {
  // Without quotes: the client does not escape them in here.
  const at = (ms: number) => `toDateTime(${Math.max(0, Math.ceil(ms / 1_000))})`
  const within = (column: string, marginMs = 0) =>
    `${column} >= ${at(fromMs - marginMs)} and ${column} < ${at(toMs + marginMs)}`
  const days = `day >= toDate(${at(fromMs - alertLateMs)}) and day <= toDate(${at(toMs + alertLateMs)})`
  return {
    // Else every day of `reconciliation_expected_alerts` is read for what an alert may have
    // elsewhere.
    do_not_merge_across_partitions_select_final: 1,
    additional_table_filters: SettingsMap.from({
      reconciliation_accepted: within('hour'),
      reconciliation_entries: within('hour'),
      telemetry: within('received_at'),
      reconciliation_expected_alerts: days,
      alerts_replica: within('created_at', alertLateMs),
      deliveries_replica: within('created_at', alertLateMs),
    }),
  }
}

const toParams = ({ tenantId, fromMs, toMs }: ReconciliationSpan) => ({
  ...(tenantId === undefined ? {} : { tenant: tenantId }),
  from: Math.ceil(fromMs / 1_000),
  to: Math.ceil(toMs / 1_000),
})

function toHour([tenantId, seconds, ...counts]: HourRow): HourOfStream {
  const at = (index: number) => counts[index]!
  return {
    tenantId,
    hourMs: seconds * 1_000,
    accepted: at(0),
    stored: at(1),
    repeats: at(2),
    refused: at(3),
    erased: at(4),
    rows: at(5),
    decided: at(6),
    alertsExpected: at(7),
    alerts: at(8),
    deliveries: at(9),
    attempted: at(10),
    delivered: at(11),
    inFlight: at(12),
    missing: {
      accepted: at(13),
      rows: at(14),
      decisions: at(15),
      alerts: at(16),
      deliveries: at(17),
    },
    unexplainedAlerts: at(18),
    expired: at(19) === 1,
    stream: at(20),
  }
}

async function nameHour(read: Read, hour: HourOfStream, end: number): Promise<NamedHour> {
  const params = { tenant: hour.tenantId, hour: hour.hourMs / 1_000, end }
  const ids = new Map<string, string[]>()
  let { rows, missing } = hour
  if (missing.rows > 0) {
    const found = await findMissingRows(read, params)
    rows += found.replaced
    missing = { ...missing, rows: missing.rows - found.replaced }
    ids.set('rows missing', found.missing)
  }
  const corrected = { ...hour, rows, missing }
  const differences: NamedDifference[] = []
  for (const difference of findReconciliationDifferences(corrected)) {
    const key = `${difference.stage} ${difference.kind}`
    const query = idQueries[key]
    if (query !== undefined) {
      const found = await read<[string]>(`${query} limit ${namedMax}`, params)
      ids.set(
        key,
        found.map(([id]) => id),
      )
    }
    differences.push({ ...difference, ids: (ids.get(key) ?? []).slice(0, namedMax) })
  }
  return { ...corrected, differences }
}

const inHour = `received_at >= toDateTime64({hour:UInt32}, 3, 'UTC')
  and received_at < toDateTime64({hour:UInt32} + ${reconciliationHourMs / 1_000}, 3, 'UTC')`
const entriesOf = (stage: 'stored' | 'decided') => `from reconciliation_entries final
  array join ids as id, places as place
  where tenant_id = {tenant:String} and hour = toDateTime({hour:UInt32}, 'UTC')
    and stage = '${stage}' and stream_offset < {end:UInt64}
    and stream_offset > (select max(stream_offset) from reconciliation_start)`

/** Events without a row at their place, and those whose row is stored under another place. */
async function findMissingRows(
  read: Read,
  params: Record<string, unknown>,
): Promise<{ missing: string[]; replaced: number }> {
  const candidates = await read<[string]>(
    `select hex(id) ${entriesOf('stored')}
       and stream_offset + place not in (
         select stream_offset from telemetry where tenant_id = {tenant:String} and ${inHour})
       and stream_offset + place not in (select stream_offset + place ${entriesOf('decided')})
     order by stream_offset, place limit ${lookedUpMax}`,
    params,
  )
  const ids = [...new Set(candidates.map(([hex]) => fromEventIdBytes(Buffer.from(hex, 'hex'))))]
  if (ids.length === 0) return { missing: [], replaced: 0 }
  const present = await read<[string]>(
    `select distinct event_id from telemetry
     where tenant_id = {tenant:String} and event_id in {ids:Array(String)}
       and toYYYYMM(received_at) = toYYYYMM(toDateTime({hour:UInt32}, 'UTC'))`,
    { ...params, ids },
  )
  const found = new Set(present.map(([id]) => id))
  return { missing: ids.filter((id) => !found.has(id)), replaced: found.size }
}

const dueInHour = `from reconciliation_expected_alerts final
  where tenant_id = {tenant:String} and first.hour = toDateTime({hour:UInt32}, 'UTC')
    and first.stream_offset < {end:UInt64}`
const alertIds = 'select alert_id from alerts_replica final where tenant_id = {tenant:String}'
const idQueries: Record<string, string> = {
  'rows unexplained': `select event_id from telemetry
    where tenant_id = {tenant:String} and ${inHour} and stream_offset < {end:UInt64}
      and stream_offset > (select max(stream_offset) from reconciliation_start)
      and stream_offset not in (select stream_offset + place ${entriesOf('stored')})
      and stream_offset not in (select stream_offset + place ${entriesOf('decided')})`,
  'alerts missing': `select alert_id ${dueInHour} and alert_id not in (${alertIds})`,
  'alerts unexplained': `${alertIds}
    and toStartOfHour(created_at) = toDateTime({hour:UInt32}, 'UTC')
    and created_at >= (select max(at) from reconciliation_start)
    and alert_id not in (
      select alert_id from reconciliation_expected_alerts where tenant_id = {tenant:String})`,
  'deliveries missing': `select alert_id ${dueInHour} and alert_id in (${alertIds})
    and alert_id not in (select alert_id from deliveries_replica final
      where tenant_id = {tenant:String} and event = 'risk.alert')`,
}
