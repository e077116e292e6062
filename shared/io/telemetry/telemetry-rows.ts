/**
 * Encodes an accepted event as a row of `telemetry`, and a pattern as a row of `signal_patterns`.
 * An insert names its columns, so an older release works with a new column.
 */
import { readOccurredAt } from '#shared/core/base/instants.ts'
import { patternVersion } from '#shared/core/scoring/sql/signal-patterns.ts'
import type { Category, Signals } from '#shared/core/signals/signal-definition.ts'
import { encodeSignals } from '#shared/core/signals/signals-column.ts'
import { findDetectedSignals } from '#shared/core/signals/signals-detected.ts'
import { toSignalBits } from '#shared/core/signals/watched-signals.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { readInstall } from '#shared/core/telemetry/install.ts'
import { findPlaceholderIds } from '#shared/core/telemetry/placeholder-ids.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { findUnknownSignals } from '#shared/core/telemetry/unknown-signals.ts'
import { toFilledCategories } from '#shared/core/velocity/signals-missing.ts'
import { actionValues } from '#shared/io/clickhouse/clickhouse.ts'
import type { RowWriter } from '#shared/io/clickhouse/row-binary.ts'
import type { NewPattern, PatternBook } from './pattern-book.ts'
import type { SignalPaths } from './signal-paths.ts'
import { toSignalPath, writeSignals } from './signals-binary.ts'

/** The columns that `writeTelemetryRow` writes, in order. */
export const telemetryColumns = [
  'tenant_id',
  'device_id',
  'session_id',
  'event_id',
  'stream_offset',
  'stream',
  'received_at',
  'occurred_at',
  'user_id',
  'account_id',
  'sdk_version',
  'platform',
  'batch_type',
  'client_score',
  'client_action',
  'client_flags',
  'rasp_score',
  'rasp_action',
  'flags',
  'reasons',
  'policy_version',
  'policy_hash',
  'epoch',
  'signals',
  'signals_refused',
  'signals_left_out',
  'placeholder_ids',
  'app_version',
  'os_version',
  'device_brand',
  'device_model',
  'filled_categories',
  'unknown_signals',
  'detected_bits',
  'clean_bits',
  'detected_signals',
  'pattern',
  'body',
] as const

const noSignals = {} as Signals

type RowOptions = {
  patterns: Pick<PatternBook, 'find'>
  paths: SignalPaths
  withSignals: boolean
  /** The number of the telemetry stream. */
  stream: number
}

// The range of DateTime64. A client's clock beyond it is only in the body.
const occurredMinMs = Date.UTC(1900, 0, 1)
const occurredMaxMs = Date.UTC(2299, 11, 31)

/**
 * Writes the row of an event.
 * @param patterns assigns a pattern to the event's signals
 * @param paths decides which unknown signals get a path
 * @param withSignals false writes no signals, for values that the JSON type cannot store
 * @returns the number of signal values that only the body has
 */
export function writeTelemetryRow(
  writer: RowWriter,
  event: AcceptedEvent,
  { patterns, paths, withSignals, stream }: RowOptions,
): number {
  const { body } = event
  const signals = body.signals as Signals
  const bits = toSignalBits(signals)
  writer.string(event.tenant_id)
  writer.string(body.device_id)
  writer.string(body.session_id)
  writer.string(event.event_id)
  writer.int64(event.streamOffset)
  writer.uint8(stream)
  writer.int64(event.received_at)
  writer.nullableInt64(toOccurredAt(body.occurred_at))
  writer.string(body.user_id ?? '')
  writer.string(body.account_id ?? '')
  writer.string(body.sdk_meta.sdk_version)
  writer.string(body.sdk_meta.platform)
  writer.string(body.sdk_meta.batch_type)
  writer.float64(body.scorer.rasp_score)
  writer.string(body.scorer.rasp_action)
  writer.strings(body.scorer.rasp_flags)
  writer.uint8(event.rasp_score)
  writer.uint8(actionValues[event.rasp_action])
  writer.strings(event.reasons.map((reason) => reason.code))
  writer.string(JSON.stringify(event.reasons))
  writer.uint32(event.policy_version)
  writer.string(event.policy_hash)
  writer.int64(event.epoch)
  const admit = (path: string) => paths.admit(event.tenant_id, path)
  const leftOut = writeSignals(writer, withSignals ? signals : noSignals, admit)
  writer.uint8(withSignals ? 0 : 1)
  writer.uint16(leftOut)
  writer.strings(findPlaceholderIds(body))
  writeInstall(writer, body)
  writer.uint8(toFilledCategories(signals))
  writer.strings(findUnknownSignals(signals))
  writer.uint32(bits.detected[0])
  writer.uint32(bits.detected[1])
  writer.uint32(bits.clean[0])
  writer.uint32(bits.clean[1])
  const isListed = (category: Category, name: string) => admit(toSignalPath(category, name))
  writer.strings(findDetectedSignals(signals, isListed))
  writer.string(patterns.find(event.tenant_id, signals))
  if (event.bodyBytes === undefined) writer.string(JSON.stringify(body))
  else writer.bytes(event.bodyBytes)
  return leftOut
}

function writeInstall(writer: RowWriter, body: Telemetry): void {
  const { appVersion, osVersion, deviceBrand, deviceModel } = readInstall(body)
  writer.string(appVersion)
  writer.string(osVersion)
  writer.string(deviceBrand)
  writer.string(deviceModel)
}

function toOccurredAt(value: unknown): number | null {
  const ms = readOccurredAt(value)
  return ms === null || ms < occurredMinMs || ms > occurredMaxMs ? null : ms
}

/** The columns that `writePatternRow` writes, in order. */
export const patternColumns = [
  'tenant_id',
  'pattern',
  'version',
  'signals',
  'hidden',
  'detected_bits',
  'clean_bits',
] as const

/** Writes the row of a pattern. */
export function writePatternRow(writer: RowWriter, { tenantId, id, pattern }: NewPattern): void {
  const bits = toSignalBits(pattern.signals)
  writer.string(tenantId)
  writer.string(id)
  writer.uint16(patternVersion)
  writer.string(encodeSignals(pattern.signals))
  writer.strings(pattern.hidden)
  writer.uint32(bits.detected[0])
  writer.uint32(bits.detected[1])
  writer.uint32(bits.clean[0])
  writer.uint32(bits.clean[1])
}
