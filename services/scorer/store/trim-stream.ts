/**
 * Makes room in the telemetry stream: removes messages that are stored and decided, the oldest
 * first, once the stream is full enough. Every scorer does so. A purge names the first sequence to
 * keep, so two of them at once remove no more than one.
 */
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import {
  isTrimDue,
  planTrim,
  type StreamFill,
  toTrimCheckMs,
  toUndecidedBytes,
  toUndecidedWarning,
} from '#shared/core/telemetry/stream-capacity.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { readStreamFill } from '#shared/io/nats/streams/stream-fill.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'

export type StreamTrimmer = {
  /** What is to be said of a stream that fills with undecided events, or null. */
  warning: () => Promise<string | null>
  stop: () => Promise<void>
}

type TrimOptions = { nats: Nats; log: Log; metrics: Metrics }

/** How long to wait after the broker did not answer. */
const retryMs = 500

/** Begins to look at the stream, until it is stopped. */
export function startStreamTrimmer({ nats, log, metrics }: TrimOptions): StreamTrimmer {
  const messages = metrics.counter(
    'di_stream_trimmed_messages_total',
    'Stored and decided messages removed from the telemetry stream to make room',
  )
  const bytes = metrics.counter(
    'di_stream_trimmed_bytes_total',
    'Bytes of stored and decided messages removed from the telemetry stream, about',
  )
  const failures = metrics.counter(
    'di_stream_trim_failures_total',
    'Looks at the telemetry stream, or removals from it, that failed',
  )
  const stopping = new AbortController()
  const onTrimmed = (before: StreamFill, purged: number) => {
    messages.inc(purged)
    bytes.inc((before.bytes * purged) / before.messages)
  }
  const run = async () => {
    for (let failed = false; !stopping.signal.aborted; ) {
      let waitMs = retryMs
      try {
        const fill = await readStreamFill(nats, telemetryStream)
        if (isTrimDue(fill)) await trim(nats, fill, onTrimmed)
        waitMs = toTrimCheckMs(fill.bytesMax)
        failed = false
      } catch (error) {
        failures.inc()
        if (!failed) log.warn({ err: error }, 'the telemetry stream cannot be trimmed now')
        failed = true
      }
      await pause(waitMs, stopping.signal)
    }
  }
  const running = run()
  return {
    warning: async () => {
      const fill = await readStreamFill(nats, telemetryStream)
      const undecided = toUndecidedBytes(fill, await readLowWatermark(nats))
      return toUndecidedWarning(undecided, fill.bytesMax)
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}

async function trim(
  nats: Nats,
  begun: StreamFill,
  onTrimmed: (before: StreamFill, purged: number) => void,
): Promise<void> {
  for (let fill = begun; ; fill = await readStreamFill(nats, telemetryStream)) {
    const keepFrom = planTrim(fill, await readLowWatermark(nats))
    if (keepFrom === null) return
    const { purged } = await nats.manager.streams.purge(telemetryStream, { seq: keepFrom })
    if (purged === 0) return
    onTrimmed(fill, purged)
  }
}
