/**
 * Encodes an accepted event as a row of `telemetry`, and a pattern as a row of `signal_patterns`.
 * An insert names its columns, so an older release works with a new column.
 */
import { readOccurredAt } from '#shared/core/base/instants.ts'
import { toStoredCounter } from '#shared/core/installs/reused-counters.ts'
import { patternVersion } from '#shared/core/scoring/sql/signal-patterns.ts'
import { findDetectedServerSignals } from '#shared/core/signals/server-detected.ts'
import {
  noServerSignals,
  type ServerSignals,
  type Signals,
} from '#shared/core/signals/signal-definition.ts'
import { encodeSignals } from '#shared/core/signals/signals-column.ts'
import { findDetectedSignals } from '#shared/core/signals/signals-detected.ts'
import { type SignalBits, toSignalBits } from '#shared/core/signals/watched-signals.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { type Install, readInstall } from '#shared/core/telemetry/install.ts'
import { findPlaceholderIds } from '#shared/core/telemetry/placeholder-ids.ts'
import {
  readClientAction,
  readClientFlags,
  readClientScore,
  type Telemetry,
} from '#shared/core/telemetry/submission.ts'
import { findUnknownSignals } from '#shared/core/telemetry/unknown-signals.ts'
import { toFilledCategories } from '#shared/core/velocity/signals-missing.ts'
import { actionValues } from '#shared/io/clickhouse/clickhouse.ts'
import type { RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import type { NewPattern, PatternBook } from './pattern-book.ts'
import type { SignalPaths } from './signal-paths.ts'
import { toSignalPath, writeServerSignals, writeSignals } from './signals-binary.ts'

const noSignals = {} as Signals

type RowOptions = {
  patterns: Pick<PatternBook, 'find'>
  paths: SignalPaths
  withSignals: boolean
  /** The number of the telemetry stream. */
  stream: number
}

/** An event with what several columns need of it. */
type Row = RowOptions & {
  event: AcceptedEvent
  body: Telemetry
  signals: Signals
  server: ServerSignals
  bits: SignalBits
  install: Install
  /** Whether an unknown signal gets a path. */
  admit: (path: string) => boolean
  /** Set by the column `signals`: how many of its values only the body has. */
  leftOut: number
}

type ColumnWriter<Of> = (writer: RowWriter, row: Of) => void

/** The columns of `telemetry` that a row has, each with its writer. An insert has their order. */
const telemetryWriters = {
  tenant_id: (writer, { event }) => writer.string(event.tenant_id),
  device_id: (writer, { body }) => writer.string(body.device_id),
  session_id: (writer, { body }) => writer.string(body.session_id),
  event_id: (writer, { event }) => writer.string(event.event_id),
  stream_offset: (writer, { event }) => writer.int64(event.streamOffset),
  stream: (writer, { stream }) => writer.uint8(stream),
  received_at: (writer, { event }) => writer.int64(event.received_at),
  occurred_at: (writer, { body }) => writer.nullableInt64(toOccurredAt(body.occurred_at)),
  user_id: (writer, { body }) => writer.string(body.user_id ?? ''),
  account_id: (writer, { body }) => writer.string(body.account_id ?? ''),
  sdk_version: (writer, { body }) => writer.string(body.sdk_meta.sdk_version),
  platform: (writer, { body }) => writer.string(body.sdk_meta.platform),
  batch_type: (writer, { body }) => writer.string(body.sdk_meta.batch_type ?? ''),
  client_score: (writer, { body }) => writer.float64(readClientScore(body.scorer)),
  client_action: (writer, { body }) => writer.string(readClientAction(body.scorer)),
  client_flags: (writer, { body }) => writer.strings(readClientFlags(body.scorer)),
  rasp_score: (writer, { event }) => writer.uint8(event.rasp_score),
  rasp_action: (writer, { event }) => writer.uint8(actionValues[event.rasp_action]),
  flags: (writer, { event }) => writer.strings(event.reasons.map(({ code }) => code)),
  reasons: (writer, { event }) => writer.string(JSON.stringify(event.reasons)),
  policy_version: (writer, { event }) => writer.uint32(event.policy_version),
  policy_hash: (writer, { event }) => writer.string(event.policy_hash),
  epoch: (writer, { event }) => writer.int64(event.epoch),
  signals: (writer, row) => {
    row.leftOut = writeSignals(writer, row.withSignals ? row.signals : noSignals, row.admit)
  },
  server_signals: (writer, { withSignals, server }) =>
    writeServerSignals(writer, withSignals ? server : noServerSignals),
  detected_server_signals: (writer, { server }) =>
    writer.strings(findDetectedServerSignals(server)),
  signals_refused: (writer, { withSignals }) => writer.uint8(withSignals ? 0 : 1),
  signals_left_out: (writer, { leftOut }) => writer.uint16(leftOut),
  placeholder_ids: (writer, { body }) => writer.strings(findPlaceholderIds(body)),
  app_version: (writer, { install }) => writer.string(install.appVersion),
  os_version: (writer, { install }) => writer.string(install.osVersion),
  device_brand: (writer, { install }) => writer.string(install.deviceBrand),
  device_model: (writer, { install }) => writer.string(install.deviceModel),
  install_token: (writer, { event }) => writer.string(event.install?.token_id ?? ''),
  attested_key: (writer, { event }) => writer.string(event.install?.attested_key ?? ''),
  assertion_counter: (writer, { event }) => writer.uint32(toStoredCounter(event.install?.counter)),
  connection_network: (writer, { event }) => writer.string(event.connection?.network ?? ''),
  connection_address_hash: (writer, { event }) =>
    writer.string(event.connection?.address_hash ?? ''),
  connection_address: (writer, { event }) => writer.string(event.connection?.address ?? ''),
  connection_country: (writer, { event }) => writer.string(event.connection?.country ?? ''),
  connection_asn: (writer, { event }) => writer.uint32(event.connection?.asn ?? 0),
  connection_organization: (writer, { event }) =>
    writer.string(event.connection?.organization ?? ''),
  connection_kinds: (writer, { event }) => writer.strings(event.connection?.kinds ?? []),
  connection_latitude: (writer, { event }) =>
    writer.float32(event.connection?.latitude ?? Number.NaN),
  connection_longitude: (writer, { event }) =>
    writer.float32(event.connection?.longitude ?? Number.NaN),
  filled_categories: (writer, { signals }) => writer.uint8(toFilledCategories(signals)),
  unknown_signals: (writer, { signals }) => writer.strings(findUnknownSignals(signals)),
  detected_bits: (writer, { bits }) => writeBits(writer, bits.detected),
  clean_bits: (writer, { bits }) => writeBits(writer, bits.clean),
  detected_signals: (writer, { signals, admit }) =>
    writer.strings(
      findDetectedSignals(signals, (category, name) => admit(toSignalPath(category, name))),
    ),
  pattern: (writer, { event, patterns, signals, server }) =>
    writer.string(patterns.find(event.tenant_id, signals, server)),
  body: (writer, { event, body }) =>
    event.bodyBytes === undefined
      ? writer.string(JSON.stringify(body))
      : writer.bytes(event.bodyBytes),
} satisfies Record<string, ColumnWriter<Row>>

/** The columns that `writeTelemetryRow` writes, in order. */
export const telemetryColumns = Object.keys(telemetryWriters) as (keyof typeof telemetryWriters)[]
const writersInOrder: ColumnWriter<Row>[] = Object.values(telemetryWriters)

// The range of DateTime64. A client's clock beyond it is only in the body.
const occurredMinMs = Date.UTC(1900, 0, 1)
const occurredMaxMs = Date.UTC(2299, 11, 31)

/**
 * Writes the row of an event.
 * @param options.patterns assigns a pattern to the event's signals
 * @param options.paths decides which unknown signals get a path
 * @param options.withSignals false writes no signals, for values that the JSON type cannot store
 * @returns the number of signal values that only the body has
 */
export function writeTelemetryRow(
  writer: RowWriter,
  event: AcceptedEvent,
  options: RowOptions,
): number {
  const { body } = event
  const signals = body.signals as Signals
  const row: Row = {
    ...options,
    event,
    body,
    signals,
    server: event.server_signals ?? noServerSignals,
    bits: toSignalBits(signals),
    install: readInstall(body),
    admit: (path) => options.paths.admit(event.tenant_id, path),
    leftOut: 0,
  }
  for (const write of writersInOrder) write(writer, row)
  return row.leftOut
}

/** A UInt64 from its low and its high half. */
function writeBits(writer: RowWriter, [low, high]: SignalBits['detected']): void {
  writer.uint32(low)
  writer.uint32(high)
}

function toOccurredAt(value: unknown): number | null {
  const ms = readOccurredAt(value)
  return ms === null || ms < occurredMinMs || ms > occurredMaxMs ? null : ms
}

const patternWriters = {
  tenant_id: (writer, { tenantId }) => writer.string(tenantId),
  pattern: (writer, { id }) => writer.string(id),
  version: (writer) => writer.uint16(patternVersion),
  signals: (writer, { pattern }) => writer.string(encodeSignals(pattern.signals)),
  server_signals: (writer, { pattern }) => writer.string(encodeSignals(pattern.server)),
  hidden: (writer, { pattern }) => writer.strings(pattern.hidden),
  detected_bits: (writer, { bits }) => writeBits(writer, bits.detected),
  clean_bits: (writer, { bits }) => writeBits(writer, bits.clean),
} satisfies Record<string, ColumnWriter<NewPattern & { bits: SignalBits }>>

/** The columns that `writePatternRow` writes, in order. */
export const patternColumns = Object.keys(patternWriters)

/** Writes the row of a pattern. */
export function writePatternRow(writer: RowWriter, pattern: NewPattern): void {
  const row = { ...pattern, bits: toSignalBits(pattern.pattern.signals) }
  for (const write of Object.values(patternWriters)) write(writer, row)
}
