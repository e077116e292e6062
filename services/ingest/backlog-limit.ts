/**
 * What each tenant has waiting undecided in the telemetry stream, as far as this edge has stored
 * it, and whether more of it may wait. The edge asks the broker about once a second how full the
 * stream is and how far deciding has come.
 */
import { capacityCheckMinMs } from '#shared/core/base/limits/stream.ts'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import {
  toTrimCheckMs,
  toUndecidedBytes,
  toUndecidedLimit,
  toUndecidedWarning,
} from '#shared/core/telemetry/stream-capacity.ts'
import { createUndecidedBytes } from '#shared/core/telemetry/undecided-bytes.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { readStreamFill } from '#shared/io/nats/streams/stream-fill.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'

export type BacklogLimit = {
  /** Counts a stored event. @param sequence of its message */
  stored: (sequence: number, tenantId: string, bytes: number) => void
  /** Whether more of a tenant may wait. Before the first look everything may. */
  mayWait: (tenantId: string, share: number) => boolean
  /** What is to be said of a stream that fills with undecided events, or null. */
  warning: () => string | null
  close: () => Promise<void>
}

export type BacklogLimitOptions = {
  nats: Nats
  log: Log
  metrics: Metrics
  /** Live edges, this one included. */
  countEdges: () => number
}

/** How long to wait after the broker did not answer. */
const retryMs = 500

/** Begins to look at the stream, until it is closed. */
export function openBacklogLimit(options: BacklogLimitOptions): BacklogLimit {
  const { nats, log, metrics, countEdges } = options
  const failures = metrics.counter(
    'di_ingest_stream_look_failures_total',
    'Times that this edge could not read how full the telemetry stream is',
  )
  const undecided = createUndecidedBytes()
  const stopping = new AbortController()
  let room: { bytesMax: number; undecidedBytes: number } | null = null
  const look = async () => {
    const newestBefore = undecided.newest()
    const fill = await readStreamFill(nats, telemetryStream)
    const lowWatermark = await readLowWatermark(nats)
    undecided.observe({ lowWatermark, lastSequence: fill.lastSequence, newestBefore })
    room = { bytesMax: fill.bytesMax, undecidedBytes: toUndecidedBytes(fill, lowWatermark) }
    return Math.max(capacityCheckMinMs, toTrimCheckMs(fill.bytesMax))
  }
  const run = async () => {
    for (let failed = false; !stopping.signal.aborted; ) {
      let waitMs = retryMs
      try {
        if (nats.connected()) waitMs = await look()
        failed = false
      } catch (error) {
        failures.inc()
        if (!failed) log.warn({ err: error }, 'the fill of the telemetry stream cannot be read')
        failed = true
      }
      await pause(waitMs, stopping.signal)
    }
  }
  const running = run()
  return {
    stored: undecided.add,
    mayWait: (tenantId, share) =>
      room === null || undecided.of(tenantId) < toUndecidedLimit(room, share, countEdges()),
    warning: () => (room === null ? null : toUndecidedWarning(room.undecidedBytes, room.bytesMax)),
    close: async () => {
      stopping.abort()
      await running
    },
  }
}
