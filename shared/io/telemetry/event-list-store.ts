/**
 * Lists a tenant's events, newest first. Events lie by device, so the newest are found by reading
 * the times of the tenant's events, span by span backwards, until the page is full. A search that
 * takes long ends early with the place where it stopped. Repeats of the same bytes are left out.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import {
  eventQueryMaxMs,
  eventRowsReadMax,
  eventSearchMs,
  eventSpansMs,
} from '#shared/core/base/limits/rest-api.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { EventFilter, EventPosition } from '#shared/core/telemetry/event-filters.ts'
import {
  type Clickhouse,
  isTooMuchToRead,
  toLoggable,
  uncompiled,
} from '#shared/io/clickhouse/clickhouse.ts'
import {
  type DecidedEvent,
  type DecidedEventRow,
  decidedEventColumns,
  toDecidedEvent,
} from './decided-event.ts'
import { type DecisionRow, decisionColumns } from './decision-store.ts'
import { type Conditions, isNoRepeat, type Span, toConditions } from './event-filter-sql.ts'

export type EventListQuery = {
  tenantId: string
  filter: EventFilter
  limit: number
  /** Only events after this place. */
  after: EventPosition | null
}

export type EventPage = {
  events: DecidedEvent[]
  /** Where the list continues; null at its end. A page may be short and not the last. */
  next: EventPosition | null
}

export type EventListStore = {
  /** @throws Problem query_failed when there are too many events to search */
  listEvents: (query: EventListQuery) => Promise<EventPage>
}

type EventListOptions = {
  /** The wall clock, in ms since 1970, and one that never goes back. */
  nowMs: () => number
  monotonicMs: () => number
  rowsReadMax?: number
  searchMs?: number
}

/** Later than every event, and within DateTime64. */
export const endMs = Date.UTC(2299, 11, 31)

export function createEventListStore(
  clickhouse: Clickhouse,
  options: EventListOptions,
): EventListStore {
  const { nowMs, monotonicMs, searchMs = eventSearchMs } = options
  const read = createEventReader(clickhouse, options.rowsReadMax ?? eventRowsReadMax)
  return {
    listEvents: async (query) => {
      const deadlineMs = monotonicMs() + searchMs
      const isLate = () => monotonicMs() > deadlineMs
      const rows: DecidedEventRow[] = []
      // One more than the page shows whether there are more.
      const wanted = query.limit + 1
      let stopped: EventPosition | null = null
      let after = query.after
      for await (const span of toSpans(query, nowMs(), () => readEarliest(read))) {
        if (after !== query.after && isLate()) {
          stopped = after
          break
        }
        const part = { span, wanted: wanted - rows.length, isLate }
        const found = await readSpan(read, { ...query, after }, part)
        rows.push(...found.rows)
        stopped = found.stopped
        if (rows.length >= wanted || stopped !== null) break
        after = { receivedAtMs: span.fromMs, eventId: '' }
      }
      const page = rows.slice(0, query.limit)
      const next = rows.length > query.limit ? toPosition(page.at(-1)!) : stopped
      return { events: await withDecisions(read, query.tenantId, page), next }
    },
  }
}

/** The spans to search, newest first. */
async function* toSpans(
  { filter, after }: EventListQuery,
  nowMs: number,
  findEarliest: () => Promise<number>,
): AsyncGenerator<Span> {
  const { from = 0, to = endMs } = filter
  let toMs = Math.min(to, endMs, after === null ? endMs : after.receivedAtMs + 1)
  // The events of a device, and those of a session, are few and together.
  if (filter.device_id !== undefined || filter.session_id !== undefined) {
    if (from < toMs) yield { fromMs: from, toMs }
    return
  }
  const anchorMs = Math.min(nowMs, toMs)
  let lowestMs = from
  // A search that goes on where it stopped has found little so far.
  const firstStep = after?.eventId === '' ? eventSpansMs.length - 1 : 0
  for (let step = firstStep; toMs > lowestMs; step++) {
    const further = step - eventSpansMs.length + 1
    // Events may be older than the longest span: then it matters where they begin.
    if (further === 1) lowestMs = Math.max(from, await findEarliest())
    const lengthMs = eventSpansMs[step] ?? longestMs * (1 + further)
    const fromMs = Math.max(lowestMs, anchorMs - lengthMs)
    if (fromMs < toMs) yield { fromMs, toMs }
    toMs = Math.min(toMs, fromMs)
  }
}

const longestMs = eventSpansMs.at(-1)!

type Read = <Row>(query: string, params: Record<string, unknown>) => Promise<Row[]>

/**
 * For queries over a tenant's events, with the bounds of the list.
 * @returns it throws Problem query_failed when there is too much to read
 */
export function createEventReader(
  clickhouse: Clickhouse,
  rowsReadMax: number,
  { maxMs = eventQueryMaxMs, ...more }: ClickHouseSettings & { maxMs?: number } = {},
): Read {
  const settings: ClickHouseSettings = {
    ...uncompiled,
    ...more,
    max_threads: 2,
    max_rows_to_read: String(rowsReadMax),
    max_execution_time: maxMs / 1_000,
  }
  return async <Row>(query: string, query_params: Record<string, unknown>) => {
    try {
      const result = await clickhouse.query({
        query,
        query_params,
        clickhouse_settings: settings,
        // Ids of a page may be longer than an address.
        use_multipart_params_auto: true,
        format: 'JSONEachRow',
        // The engine ends a query itself first.
        abort_signal: AbortSignal.timeout(maxMs + 500),
      })
      return await result.json<Row>()
    } catch (error) {
      if (!isTooMuchToRead(error)) throw error
      throw new Problem('query_failed', tooManyText, { cause: toLoggable(error) })
    }
  }
}

const tooManyText =
  'There are too many events to search at once. Name a device_id, a user_id or a session_id, or a ' +
  'shorter time with from and to.'

/** When the first stored event of any tenant was received: parts know it. */
async function readEarliest(read: Read): Promise<number> {
  const [row] = await read<{ ms: number | null }>(
    'select if(count() = 0, null, toUnixTimestamp64Milli(min(received_at))) as ms from telemetry',
    {},
  )
  return row?.ms ?? endMs
}

/** What is read of a span: how many rows at most, and whether the search has to end. */
type SpanPart = { span: Span; wanted: number; isLate: () => boolean }

/**
 * The newest events of a span after a place, each once.
 * @returns also where it stopped, when many rows were repeats; null at the end of the span
 */
async function readSpan(
  read: Read,
  { tenantId, filter, after }: EventListQuery,
  { span, wanted, isLate }: SpanPart,
): Promise<{ rows: DecidedEventRow[]; stopped: EventPosition | null }> {
  const events: DecidedEventRow[] = []
  for (let place = after; ; ) {
    const most = wanted - events.length + rowsMore
    const toMs = place === null ? span.toMs : Math.min(span.toMs, place.receivedAtMs)
    const older = toConditions(tenantId, filter, { fromMs: span.fromMs, toMs })
    const fromMs = (await findHorizon(read, older, wanted - events.length)) ?? span.fromMs
    const near = toConditions(tenantId, filter, { fromMs, toMs: Math.min(span.toMs, toMs + 1) })
    const rows = await read<DecidedEventRow>(rowsSql(near.text), {
      ...near.params,
      after_ms: place?.receivedAtMs ?? endMs,
      after_id: place?.eventId ?? '',
      rows: most,
    })
    events.push(...toFirsts(rows).slice(0, wanted - events.length))
    if (events.length === wanted) return { rows: events, stopped: null }
    const isCut = rows.length === most
    if (!isCut && fromMs === span.fromMs) return { rows: events, stopped: null }
    place = isCut ? toPosition(rows.at(-1)!) : { receivedAtMs: fromMs, eventId: '' }
    if (isLate()) return { rows: events, stopped: place }
  }
}

/** Rows that are read beyond those that are wanted: some may be repeats. */
const rowsMore = 64

/** @returns the instant of the newest row but so many; null when there are fewer */
async function findHorizon(
  read: Read,
  { text, params }: Conditions,
  rows: number,
): Promise<number | null> {
  // One column of most rows: the others are read of the few that are near enough.
  const [row] = await read<{ ms: number }>(
    `select toUnixTimestamp64Milli(received_at) as ms from telemetry where ${text}
     order by received_at desc limit 1 offset {before:UInt32}`,
    { ...params, before: rows - 1 },
  )
  return row?.ms ?? null
}

const rowsSql = (conditions: string) => `
  select ${decidedEventColumns}
  from telemetry
  where ${conditions}
    and (received_at < fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC')
      or received_at = fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC')
        and event_id < {after_id:String})
    and ${isNoRepeat}
  order by received_at desc, event_id desc
  limit {rows:UInt32}`

/** Of each event the row that was received first; a repeat may not be decided yet. */
function toFirsts(rows: readonly DecidedEventRow[]): DecidedEventRow[] {
  const firsts = new Map(rows.map((row) => [row.eventId, row]))
  return rows.filter((row) => firsts.get(row.eventId) === row)
}

const toPosition = ({ receivedAtMs, eventId }: EventPosition): EventPosition => ({
  receivedAtMs,
  eventId,
})

async function withDecisions(
  read: Read,
  tenantId: string,
  rows: readonly DecidedEventRow[],
): Promise<DecidedEvent[]> {
  if (rows.length === 0) return []
  const decided = await read<DecisionRow>(
    `select ${decisionColumns} from decisions
     where tenant_id = {tenant:String} and device_id in {devices:Array(String)}
       and event_id in {events:Array(String)}
       and received_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')`,
    {
      tenant: tenantId,
      devices: [...new Set(rows.map((row) => row.deviceId))],
      events: rows.map((row) => row.eventId),
      from: rows.at(-1)!.receivedAtMs,
    },
  )
  const byId = new Map(decided.map((row) => [row.eventId, row]))
  return rows.map((row) => toDecidedEvent(row, byId.get(row.eventId)))
}
