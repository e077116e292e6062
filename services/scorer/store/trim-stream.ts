/**
 * Trims the telemetry stream: once it is full enough, it removes stored and decided messages,
 * oldest first. Every scorer does so. A purge names the first sequence to keep, so two concurrent
 * purges remove no more than one.
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
import { startPolling } from '#shared/io/process/poll.ts'

type StreamTrimmer = {
  /** A warning while much of the stream is undecided, else null. */
  warning: () => Promise<string | null>
  stop: () => Promise<void>
}

type TrimOptions = { nats: Nats; log: Log; metrics: Metrics }

/** Pause after a failed check. */
const retryMs = 500

/** Starts to check the stream's fill level, until it is stopped. */
export function startStreamTrimmer({ nats, log, metrics }: TrimOptions): StreamTrimmer {
  const messages = metrics.counter(
    'di_stream_trimmed_messages_total',
    'Stored and decided messages removed from the telemetry stream',
  )
  const bytes = metrics.counter(
    'di_stream_trimmed_bytes_total',
    'Bytes of stored and decided messages removed from the telemetry stream, estimated',
  )
  const failures = metrics.counter(
    'di_stream_trim_failures_total',
    'Failed checks or trims of the telemetry stream',
  )
  const onTrimmed = (before: StreamFill, purged: number) => {
    messages.inc(purged)
    bytes.inc((before.bytes * purged) / before.messages)
  }
  let everyMs = retryMs
  const check = async () => {
    const fill = await readStreamFill(nats, telemetryStream)
    if (isTrimDue(fill)) await trim(nats, fill, onTrimmed)
    everyMs = toTrimCheckMs(fill.bytesMax)
  }
  const poller = startPolling(check, {
    log,
    everyMs: () => everyMs,
    failure: 'trimming the telemetry stream failed',
    onFailure: () => {
      failures.inc()
      everyMs = retryMs
    },
  })
  return {
    warning: async () => {
      const fill = await readStreamFill(nats, telemetryStream)
      const undecided = toUndecidedBytes(fill, await readLowWatermark(nats))
      return toUndecidedWarning(undecided, fill.bytesMax)
    },
    stop: poller.stop,
  }
}

/** Messages differ in size, so it repeats until the stream is trimmed. */
async function trim(
  nats: Nats,
  first: StreamFill,
  onTrimmed: (before: StreamFill, purged: number) => void,
): Promise<void> {
  for (let fill = first; ; fill = await readStreamFill(nats, telemetryStream)) {
    const keepFrom = planTrim(fill, await readLowWatermark(nats))
    if (keepFrom === null) return
    const { purged } = await nats.manager.streams.purge(telemetryStream, { seq: keepFrom })
    if (purged === 0) return
    onTrimmed(fill, purged)
  }
}
