/** The rows of the drain benchmark's events, encoded as the telemetry store encodes them. */
import { decodeBatch, toStreamOffset } from '#shared/core/telemetry/event-batch.ts'
import { createRowWriter } from '#shared/io/clickhouse/row-binary.ts'
import { createPatternBook } from '#shared/io/telemetry/pattern-book.ts'
import { createSignalPaths } from '#shared/io/telemetry/signal-paths.ts'
import { writeTelemetryRow } from '#shared/io/telemetry/telemetry-rows.ts'
import { type DrainEvents, makeDrainMessages } from './drain-events.ts'

/** Separate rows, in the order of their events. */
export function* makeDrainRows(options: DrainEvents): Generator<Buffer> {
  const patterns = createPatternBook(() => performance.now())
  const paths = createSignalPaths(() => performance.now())
  const writer = createRowWriter()
  let sequence = 0
  for (const message of makeDrainMessages(options)) {
    const streamOffset = toStreamOffset(options.startedAtMs, ++sequence)
    for (const event of decodeBatch(message, streamOffset).events) {
      writer.reset()
      writeTelemetryRow(writer, event, { patterns, paths, stream: 1, withSignals: true })
      yield Buffer.from(writer.written())
    }
    patterns.markStored(patterns.listNew())
  }
}

/** The same rows as the bodies of inserts, `rowsPerInsert` in each but the last. */
export function toInserts(rows: readonly Buffer[], rowsPerInsert: number): Buffer[] {
  const inserts: Buffer[] = []
  for (let at = 0; at < rows.length; at += rowsPerInsert) {
    inserts.push(Buffer.concat(rows.slice(at, at + rowsPerInsert)))
  }
  return inserts
}
