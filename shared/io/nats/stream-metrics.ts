/**
 * How full the streams are, asked of the broker whenever metrics are. Each process that shows them
 * shows the same numbers.
 */
import {
  alertsStream,
  deadLetterStream,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import { toUndecidedBytes } from '#shared/core/telemetry/stream-capacity.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { Nats } from './connection.ts'
import { readLowWatermark } from './low-watermark.ts'
import { type ReadFill, readStreamFill } from './stream-fill.ts'

const streams = [telemetryStream, alertsStream, deadLetterStream]
/** The gauges are collected within a moment of each other: one look is for all of them. */
const lookMs = 500

/** Adds the gauges of the streams. */
export function observeStreams(nats: Nats, metrics: Metrics): void {
  const looks = new Map<string, { atMs: number; fill: Promise<ReadFill | null> }>()
  const read = (stream: string): Promise<ReadFill | null> => {
    let look = looks.get(stream)
    if (look === undefined || performance.now() - look.atMs > lookMs) {
      const fill = nats.connected() ? readStreamFill(nats, stream).catch(() => null) : null
      look = { atMs: performance.now(), fill: Promise.resolve(fill) }
      looks.set(stream, look)
    }
    return look.fill
  }
  const addGauge = (name: string, help: string, pick: (fill: ReadFill) => number) => {
    metrics.gauge(name, help, {
      labels: ['stream'],
      async collect() {
        // Without an answer there is no number: an old one would look like a healthy one.
        this.reset()
        for (const stream of streams) {
          const fill = await read(stream)
          if (fill !== null) this.set({ stream }, pick(fill))
        }
      },
    })
  }
  addGauge('di_stream_bytes', 'Bytes that a stream holds', ({ bytes }) => bytes)
  addGauge('di_stream_max_bytes', 'Bytes that a stream may hold', ({ bytesMax }) => bytesMax)
  addGauge(
    'di_stream_oldest_seconds',
    'Age of the oldest message that a stream keeps',
    ({ oldestSeconds }) => oldestSeconds,
  )
  metrics.gauge(
    'di_stream_undecided_bytes',
    'Bytes of the telemetry stream that are not stored and decided yet, about',
    {
      async collect() {
        const fill = await read(telemetryStream)
        const low = await readLowWatermark(nats).catch(() => null)
        if (fill === null || low === null) this.remove()
        else this.set(toUndecidedBytes(fill, low))
      },
    },
  )
}
