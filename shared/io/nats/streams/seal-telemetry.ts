/**
 * Ends the telemetry streams of servers that are left for others: they take no further message, and
 * scorers finish what they have.
 */
import type { Nats } from '../connection.ts'
import { readLowWatermark } from '../consume/low-watermark.ts'

/**
 * Seals every telemetry stream, for ever. From then on an edge that is still connected gets no
 * acknowledgement and answers 503.
 * @throws when the broker does not answer, or does not allow it
 */
export async function sealTelemetry(nats: Nats): Promise<void> {
  for (const { stream } of nats.telemetryStreams) {
    const { config } = await nats.manager.streams.info(stream)
    const sealed = { ...config, sealed: true }
    if (!config.sealed) await nats.manager.streams.update(stream, sealed)
  }
}

/**
 * @returns how many messages are not stored and decided yet
 * @throws when the broker does not answer
 */
export async function countUndecided(nats: Nats): Promise<number> {
  let undecided = 0
  for (const stream of nats.telemetryStreams) {
    const { state } = await nats.manager.streams.info(stream.stream)
    undecided += Math.max(0, state.last_seq - (await readLowWatermark(nats, stream)))
  }
  return undecided
}
