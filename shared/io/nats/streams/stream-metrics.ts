/**
 * Gauges of how full the streams are, read from the broker at each scrape. Every process that has
 * them shows the same numbers.
 */
import type { Counter } from 'prom-client'
import { alertsStream, deadLetterStream } from '#shared/core/telemetry/nats-names.ts'
import { toUndecidedBytes } from '#shared/core/telemetry/streams/stream-capacity.ts'
import {
  type TelemetryStream,
  toStreamLabels,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { Nats } from '../connection.ts'
import { readLowWatermark } from '../consume/low-watermark.ts'
import { shareReadings } from '../shared-readings.ts'
import { readStreamFill, type StreamFillReading } from './stream-fill.ts'

/** Adds the gauges to the process's metrics. */
export function observeStreams(nats: Nats, metrics: Metrics): void {
  const { telemetryStreams } = nats
  const streams = [...telemetryStreams.map(({ stream }) => stream), alertsStream, deadLetterStream]
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
      labels: ['stream'],
      async collect() {
        for (const one of telemetryStreams) {
          const labels = toStreamLabels(one, telemetryStreams.length)
          const fill = await read(one.stream)
          const lowWatermark = await readLowWatermark(nats, one).catch(() => null)
          if (fill === null || lowWatermark === null) this.remove(labels)
          else this.set(labels, toUndecidedBytes(fill, lowWatermark))
        }
      },
    },
  )
}

/**
 * The series of one stream in a counter that the objects of all streams share. It begins at 0.
 * @returns the function that adds to it
 */
export function countOfStream(
  metrics: Metrics,
  { nats, stream }: { nats: Nats; stream: TelemetryStream },
  name: string,
  help: string,
): (by?: number) => void {
  const present = metrics.registry.getSingleMetric(name) as Counter<'stream'> | undefined
  const counter = present ?? metrics.counter(name, help, ['stream'])
  const labels = toStreamLabels(stream, nats.telemetryStreams.length)
  counter.inc(labels, 0)
  return (by) => counter.inc(labels, by)
}
