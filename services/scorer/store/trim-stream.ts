/**
 * Trims a telemetry stream: once it is full enough, it removes stored and decided messages,
 * oldest first. Every scorer does so. A purge names the first sequence to keep, so two concurrent
 * purges remove no more than one.
 */
import {
  isTrimDue,
  planTrim,
  type StreamFill,
  toTrimCheckMs,
  toUndecidedBytes,
  toUndecidedWarning,
} from '#shared/core/telemetry/streams/stream-capacity.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { readStreamFill } from '#shared/io/nats/streams/stream-fill.ts'
import { countOfStream } from '#shared/io/nats/streams/stream-metrics.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { startPolling } from '#shared/io/process/poll.ts'

type StreamTrimmer = {
  /** A warning while much of the stream is undecided, else null. */
  warning: () => Promise<string | null>
  stop: () => Promise<void>
}

type TrimOptions = { nats: Nats; stream: TelemetryStream; log: Log; metrics: Metrics }

/** Pause after a failed check. */
const retryMs = 500

/** Starts to check the stream's fill level, until it is stopped. */
export function startStreamTrimmer(options: TrimOptions): StreamTrimmer {
  const { nats, stream, log, metrics } = options
  const countMessages = countOfStream(
    metrics,
    options,
    'di_stream_trimmed_messages_total',
    'Stored and decided messages removed from the telemetry stream',
  )
  const countBytes = countOfStream(
    metrics,
    options,
    'di_stream_trimmed_bytes_total',
    'Bytes of stored and decided messages removed from the telemetry stream, estimated',
  )
  const countFailure = countOfStream(
    metrics,
    options,
    'di_stream_trim_failures_total',
    'Failed checks or trims of the telemetry stream',
  )
  const onTrimmed = (before: StreamFill, purged: number) => {
    countMessages(purged)
    countBytes((before.bytes * purged) / before.messages)
  }
  let everyMs = retryMs
  const check = async () => {
    const fill = await readStreamFill(nats, stream.stream)
    if (isTrimDue(fill)) await trim(options, fill, onTrimmed)
    everyMs = toTrimCheckMs(fill.bytesMax)
  }
  const poller = startPolling(check, {
    log,
    everyMs: () => everyMs,
    failure: `trimming the stream ${stream.stream} failed`,
    onFailure: () => {
      countFailure()
      everyMs = retryMs
    },
  })
  return {
    warning: async () => {
      const fill = await readStreamFill(nats, stream.stream)
      const undecided = toUndecidedBytes(fill, await readLowWatermark(nats, stream))
      return toUndecidedWarning(undecided, fill.bytesMax)
    },
    stop: poller.stop,
  }
}

/** Messages differ in size, so it repeats until the stream is trimmed. */
async function trim(
  { nats, stream }: Pick<TrimOptions, 'nats' | 'stream'>,
  first: StreamFill,
  onTrimmed: (before: StreamFill, purged: number) => void,
): Promise<void> {
  for (let fill = first; ; fill = await readStreamFill(nats, stream.stream)) {
    const keepFrom = planTrim(fill, await readLowWatermark(nats, stream))
    if (keepFrom === null) return
    const { purged } = await nats.manager.streams.purge(stream.stream, { seq: keepFrom })
    if (purged === 0) return
    onTrimmed(fill, purged)
  }
}
