/**
 * Limits the backlog of each tenant of a stream: the bytes of its events in the stream that are not
 * yet decided, as far as this edge stored them. It reads the stream's fill level and low watermark
 * about once a second.
 */
import { capacityCheckMinMs } from '#shared/core/base/limits/stream.ts'
import {
  toTrimCheckMs,
  toUndecidedBytes,
  toUndecidedLimit,
  toUndecidedWarning,
} from '#shared/core/telemetry/streams/stream-capacity.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { createUndecidedBytes } from '#shared/core/telemetry/streams/undecided-bytes.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { readStreamFill } from '#shared/io/nats/streams/stream-fill.ts'
import { countOfStream } from '#shared/io/nats/streams/stream-metrics.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { startPolling } from '#shared/io/process/poll.ts'

export type BacklogLimit = {
  /** Adds a stored event. @param sequence of its message */
  add: (sequence: number, tenantId: string, bytes: number) => void
  /** Whether a tenant's backlog is below its limit; always true before the first reading. */
  mayWait: (tenantId: string, share: number) => boolean
  /** A warning while much of the stream is undecided, else null. */
  warning: () => string | null
  close: () => Promise<void>
}

type BacklogLimitOptions = {
  nats: Nats
  stream: TelemetryStream
  log: Log
  metrics: Metrics
  /** Number of live edges, this one included. */
  countEdges: () => number
}

/** Pause after a failed reading. */
const retryMs = 500

/** Starts to read the stream's fill level, until it is closed. */
export function openBacklogLimit(options: BacklogLimitOptions): BacklogLimit {
  const { nats, stream, log, metrics, countEdges } = options
  const countFailure = countOfStream(
    metrics,
    options,
    'di_ingest_backlog_read_failures_total',
    'Failed readings of the fill level of the telemetry stream',
  )
  const countReplaced = countOfStream(
    metrics,
    options,
    'di_ingest_stream_replaced_total',
    'Times that the telemetry stream no longer had the newest message that this edge stored',
  )
  const undecided = createUndecidedBytes()
  let capacity: { bytesMax: number; bytes: number; undecidedBytes: number } | null = null
  /** Bytes that this edge stored since the last reading began. */
  let stored = 0
  let everyMs = retryMs
  const read = async () => {
    if (!nats.connected()) return
    const newestBefore = undecided.newest()
    const storedBefore = stored
    const fill = await readStreamFill(nats, stream.stream)
    const lowWatermark = await readLowWatermark(nats, stream)
    const { lastSequence } = fill
    if (undecided.observe({ lowWatermark, lastSequence, newestBefore })) {
      countReplaced()
      log.error(
        { stream: stream.stream, last_sequence: lastSequence, stored_sequence: newestBefore },
        'the telemetry stream lost messages: it was put back to an earlier copy, or recreated',
      )
    }
    const { bytesMax, bytes } = fill
    capacity = { bytesMax, bytes, undecidedBytes: toUndecidedBytes(fill, lowWatermark) }
    stored -= storedBefore
    everyMs = Math.max(capacityCheckMinMs, toTrimCheckMs(fill.bytesMax))
  }
  const poller = startPolling(read, {
    log,
    everyMs: () => everyMs,
    failure: `the fill level of the stream ${stream.stream} cannot be read`,
    onFailure: () => {
      countFailure()
      everyMs = retryMs
    },
  })
  const mayWait = (tenantId: string, share: number): boolean => {
    if (capacity === null) return true
    const { bytesMax, bytes, undecidedBytes } = capacity
    const now = { bytesMax, bytes: bytes + stored, undecidedBytes: undecidedBytes + stored }
    return undecided.of(tenantId) < toUndecidedLimit(now, share, countEdges())
  }
  return {
    add: (sequence, tenantId, bytes) => {
      stored += bytes
      undecided.add(sequence, tenantId, bytes)
    },
    mayWait,
    warning: () =>
      capacity === null ? null : toUndecidedWarning(capacity.undecidedBytes, capacity.bytesMax),
    close: poller.stop,
  }
}
