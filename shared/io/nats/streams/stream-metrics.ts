/**
 * Gauges of how full the streams are, read from the broker at each scrape. Every process that has
 * them shows the same numbers.
 */
import {
  alertsStream,
  deadLetterStream,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import { toUndecidedBytes } from '#shared/core/telemetry/stream-capacity.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { Nats } from '../connection.ts'
import { readLowWatermark } from '../consume/low-watermark.ts'
import { shareReadings } from '../shared-readings.ts'
import { readStreamFill, type StreamFillReading } from './stream-fill.ts'

const streams = [telemetryStream, alertsStream, deadLetterStream]

/** Adds the gauges to the process's metrics. */
export function observeStreams(nats: Nats, metrics: Metrics): void {
  const read = shareReadings(async (stream: string) =>
    nats.connected() ? readStreamFill(nats, stream) : null,
  )
  const addGauge = (name: string, help: string, pick: (fill: StreamFillReading) => number) => {
    metrics.gauge(name, help, {
      labels: ['stream'],
      async collect() {
        this.reset()
        for (const stream of streams) {
          const fill = await read(stream)
          if (fill !== null) this.set({ stream }, pick(fill))
        }
      },
    })
  }
  addGauge('di_stream_bytes', 'Bytes in a stream', ({ bytes }) => bytes)
  addGauge('di_stream_max_bytes', 'Maximum bytes of a stream', ({ bytesMax }) => bytesMax)
  addGauge(
    'di_stream_oldest_seconds',
    'Age of the oldest message of a stream',
    ({ oldestSeconds }) => oldestSeconds,
  )
  metrics.gauge(
    'di_stream_undecided_bytes',
    'Bytes of the telemetry stream that are not yet stored and decided, estimated',
    {
      async collect() {
        const fill = await read(telemetryStream)
        const lowWatermark = await readLowWatermark(nats).catch(() => null)
        if (fill === null || lowWatermark === null) this.remove()
        else this.set(toUndecidedBytes(fill, lowWatermark))
      },
    },
  )
}
