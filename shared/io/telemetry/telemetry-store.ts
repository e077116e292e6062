/**
 * Writes accepted events to ClickHouse: one insert for as many as there are, which also feeds every
 * table derived from them. An accepted event is always stored. Should the engine refuse a batch for
 * what is in it, the batch is halved until the one row that it cannot hold is found; that one is
 * stored with its body and without its parsed signals. Repeating an insert changes nothing.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import {
  type Clickhouse,
  insertRowBinary,
  smallQuery,
  toRefusal,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { createPatternBook, type PatternBook } from './pattern-book.ts'
import { createSignalPaths, type SignalPaths } from './signal-paths.ts'
import {
  patternColumns,
  telemetryColumns,
  writePatternRow,
  writeTelemetryRow,
} from './telemetry-rows.ts'

export type InsertOutcome = {
  /** Events stored with their body but without parsed signals. */
  withoutSignals: AcceptedEvent[]
  /** Events that ClickHouse refused even so: they can never be stored. */
  refused: AcceptedEvent[]
  /** Values of signals that only the body has, by tenant. */
  leftOut: Map<string, number>
}

export type TelemetryStore = {
  /**
   * Stores events and everything derived from them. One call at a time.
   * @param events gone through once, as they are sent, and again where some are refused
   * @throws whatever failed, when it was not the data: nothing may have been stored, or all
   */
  insertTelemetry: (events: Iterable<AcceptedEvent>) => Promise<InsertOutcome>
}

const intoPatterns = `signal_patterns (${patternColumns.join(', ')})`

/**
 * For signals that come as JSON text, as those of patterns do. A dot in a key is kept apart from
 * the dots of paths, as `%2E`: else `{"root.su_binary": true}` beside the categories would read as
 * the signal that it is not. Text that looks like a date stays the text it is.
 */
export const signalsTextSettings: ClickHouseSettings = {
  input_format_binary_read_json_as_string: 1,
  type_json_skip_duplicated_paths: 1,
  json_type_escape_dots_in_keys: 1,
  input_format_try_infer_dates: 0,
  input_format_try_infer_datetimes: 0,
}

/**
 * Where rows of `writeTelemetryRow` go, and how: planned as what little they are, and not joined
 * before they are written, which costs as much as a view and finds next to nothing to join.
 */
export const telemetryInsert: { into: string; settings: ClickHouseSettings } = {
  into: `telemetry (${telemetryColumns.join(', ')})`,
  settings: {
    ...smallQuery,
    input_format_binary_read_json_as_string: 0,
    optimize_on_insert: 0,
    // How many there are is known only once they have been sent.
    throw_if_no_data_to_insert: 0,
  },
}

/** @param paths which signals beyond the catalog get a path */
export function createTelemetryStore(
  clickhouse: Clickhouse,
  paths: SignalPaths = createSignalPaths(() => performance.now()),
): TelemetryStore {
  const insert = (rows: Iterable<Uint8Array>) =>
    insertRowBinary(clickhouse, telemetryInsert.into, rows, telemetryInsert.settings)
  const writer = createRowWriter()
  const patterns = createPatternBook()
  return {
    insertTelemetry: async (events) => {
      const outcome: InsertOutcome = {
        withoutSignals: [],
        refused: [],
        leftOut: new Map(),
      }
      const insertion: Insertion = {
        insert,
        writer,
        patterns,
        paths,
        outcome,
        stored: 0,
        suspects: [],
      }
      await insertEvents(events, insertion)
      await insertPatterns(clickhouse, writer, patterns)
      const [suspect] = insertion.suspects
      // A server that takes nothing at all is at fault itself, whatever it says.
      if (suspect !== undefined && insertion.stored === 0) throw suspect.error
      outcome.refused.push(...insertion.suspects.map(({ event }) => event))
      return outcome
    },
  }
}

/**
 * After the events: they are repeated when this fails, and with them their patterns. An event whose
 * pattern is not stored is only slower to backtest, so a refusal costs nothing else.
 */
async function insertPatterns(
  clickhouse: Clickhouse,
  writer: RowWriter,
  patterns: PatternBook,
): Promise<void> {
  const fresh = patterns.listNew()
  if (fresh.length === 0) return
  writer.reset()
  for (const one of fresh) writePatternRow(writer, one)
  try {
    await insertRowBinary(clickhouse, intoPatterns, writer.written(), signalsTextSettings)
  } catch (error) {
    if (toRefusal(error) === null) throw error
  }
  patterns.markStored(fresh)
}

type Insertion = {
  insert: (rows: Iterable<Uint8Array>) => Promise<void>
  writer: RowWriter
  patterns: PatternBook
  paths: SignalPaths
  outcome: InsertOutcome
  /** Inserts that ClickHouse took. */
  stored: number
  /** Events that it refused for a reason that may be its own. */
  suspects: { event: AcceptedEvent; error: unknown }[]
}

/**
 * While the server reads one piece the next is made; none is held longer than that. As large as
 * what is read off a connection at a time: other sizes leave holes in malloc's heap, which grows.
 */
const pieceBytes = 64 * 1024

function* encodeRows(
  events: Iterable<AcceptedEvent>,
  { writer, patterns, paths, outcome }: Insertion,
  withSignals: boolean,
): Generator<Uint8Array> {
  writer.reset()
  for (const event of events) {
    const leftOut = writeTelemetryRow(writer, event, { patterns, paths, withSignals })
    if (leftOut > 0) {
      const { tenant_id: tenantId } = event
      outcome.leftOut.set(tenantId, (outcome.leftOut.get(tenantId) ?? 0) + leftOut)
    }
    if (writer.written().length < pieceBytes) continue
    yield Buffer.from(writer.written())
    writer.reset()
  }
  if (writer.written().length > 0) yield Buffer.from(writer.written())
}

async function insertEvents(events: Iterable<AcceptedEvent>, insertion: Insertion): Promise<void> {
  const { insert } = insertion
  try {
    await insert(encodeRows(events, insertion, true))
    insertion.stored++
  } catch (error) {
    const refusal = toRefusal(error)
    if (refusal === null) throw error
    const all = [...events]
    if (refusal === 'memory' && all.length === 1) throw error
    if (all.length === 1) return insertWithoutSignals(all[0]!, insertion)
    const half = all.length >> 1
    await insertEvents(all.slice(0, half), insertion)
    await insertEvents(all.slice(half), insertion)
  }
}

async function insertWithoutSignals(event: AcceptedEvent, insertion: Insertion): Promise<void> {
  const { insert, outcome } = insertion
  try {
    await insert(encodeRows([event], insertion, false))
    insertion.stored++
    outcome.withoutSignals.push(event)
  } catch (error) {
    const refusal = toRefusal(error)
    if (refusal === 'data') outcome.refused.push(event)
    else if (refusal === 'suspect') insertion.suspects.push({ event, error })
    else throw error
  }
}
