/**
 * Inserts accepted events into ClickHouse: one insert per batch, which also feeds the derived
 * tables. An accepted event is always stored. When ClickHouse refuses a batch because of its
 * content, the batch is halved until the refused row is found; that event is stored without parsed
 * signals. An insert is idempotent.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { toKeyHash } from '#shared/core/velocity/key-hash.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  insertRowBinary,
  smallQuery,
  toRefusal,
} from '#shared/io/clickhouse/clickhouse.ts'
import { createRowWriter, type RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { onNodesOf } from '#shared/io/clickhouse/shards.ts'
import { createPatternBook, type PatternBook } from './pattern-book.ts'
import { createSignalPaths, type SignalPaths } from './signal-paths.ts'
import {
  patternColumns,
  telemetryColumns,
  writePatternRow,
  writeTelemetryRow,
} from './telemetry-rows.ts'

type InsertOutcome = {
  /** Events stored with their body but without parsed signals. */
  withoutSignals: AcceptedEvent[]
  /** Events that ClickHouse refused even without signals: they can never be stored. */
  refused: AcceptedEvent[]
  /** Number of signal values that only the body has, by tenant. */
  leftOut: Map<string, number>
}

export type TelemetryStore = {
  /**
   * Stores events and everything derived from them. One call at a time.
   * @param events iterated once while they are sent, and again if some are refused
   * @throws when the server or the network fails; the events may be stored or not
   */
  insertTelemetry: (events: Iterable<AcceptedEvent>) => Promise<InsertOutcome>
}

const intoPatterns = `signal_patterns (${patternColumns.join(', ')})`

/**
 * Settings for signals as JSON text, as in patterns. Dots in keys are escaped, or
 * `{"root.su_binary": true}` would read as a known signal. Text that looks like a date remains
 * text.
 */
export const signalsTextSettings: ClickHouseSettings = {
  input_format_binary_read_json_as_string: 1,
  type_json_skip_duplicated_paths: 1,
  json_type_escape_dots_in_keys: 1,
  input_format_try_infer_dates: 0,
  input_format_try_infer_datetimes: 0,
}

/**
 * The target and the settings of telemetry inserts. `optimize_on_insert` is off: merging rows
 * before the write costs as much as a view and finds almost no duplicates.
 */
export const telemetryInsert: { into: string; settings: ClickHouseSettings } = {
  into: `telemetry (${telemetryColumns.join(', ')})`,
  settings: {
    ...smallQuery,
    input_format_binary_read_json_as_string: 0,
    optimize_on_insert: 0,
    // The number of rows is unknown before they are sent.
    throw_if_no_data_to_insert: 0,
  },
}

/**
 * @param options.paths decides which unknown signals get a path
 * @param options.stream the number of the telemetry stream that the events come from; 1 by default
 */
export function createTelemetryStore(
  clickhouse: Clickhouse,
  options: { paths?: SignalPaths; stream?: number } = {},
): TelemetryStore {
  const { paths = createSignalPaths(() => performance.now()), stream = 1 } = options
  // Shards are written at the same time.
  const writers = Array.from({ length: clickhouse.shards.length || 1 }, createRowWriter)
  const patterns = createPatternBook(() => performance.now())
  return {
    insertTelemetry: async (events) => {
      const outcome: InsertOutcome = {
        withoutSignals: [],
        refused: [],
        leftOut: new Map(),
      }
      const insertInto = async (
        node: ClickhouseNode,
        events: Iterable<AcceptedEvent>,
        shard = 0,
      ) => {
        const insertion: Insertion = {
          insert: (rows) =>
            insertRowBinary(node, telemetryInsert.into, rows, telemetryInsert.settings),
          writer: writers[shard]!,
          patterns,
          paths,
          stream,
          outcome,
          stored: 0,
          suspects: [],
        }
        await insertEvents(events, insertion)
        return insertion
      }
      // One node takes the events as they come; of shards each gets its own.
      const insertions =
        writers.length === 1
          ? [await insertInto(clickhouse, events)]
          : await onNodesOf(clickhouse, events, toShardKey, insertInto)
      await insertPatterns(clickhouse, writers[0]!, patterns)
      for (const { suspects, stored } of insertions) {
        const [suspect] = suspects
        // When ClickHouse accepts nothing, the server is at fault.
        if (suspect !== undefined && stored === 0) throw suspect.error
        outcome.refused.push(...suspects.map(({ event }) => event))
      }
      return outcome
    },
  }
}

const toShardKey = ({ body }: AcceptedEvent) => toKeyHash('device', body.device_id)

/**
 * Inserts new patterns. It runs after the events, whose repetition includes it. A refusal is
 * ignored: events without a stored pattern are only slower to backtest.
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
  stream: number
  outcome: InsertOutcome
  /** Successful inserts. */
  stored: number
  /** Refused events where the server may be at fault. */
  suspects: { event: AcceptedEvent; error: unknown }[]
}

/**
 * Bytes per piece: the server reads one while the next is encoded. The size of a socket read: other
 * sizes fragment malloc's heap, which then grows.
 */
const pieceBytes = 64 * 1024

function* encodeRows(
  events: Iterable<AcceptedEvent>,
  { writer, patterns, paths, stream, outcome }: Insertion,
  withSignals: boolean,
): Generator<Uint8Array> {
  writer.reset()
  for (const event of events) {
    const leftOut = writeTelemetryRow(writer, event, { patterns, paths, stream, withSignals })
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
