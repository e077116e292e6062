/**
 * How far the stream has been worked off without a gap, by whichever scorers. What is decided only
 * up to where all is stored is decided with everything before it in ClickHouse; and where all
 * before it is decided, there is no earlier event left that could change it.
 */
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from './connection.ts'

/**
 * @returns the sequence up to which every message is stored
 * @throws when the broker does not answer
 */
export function readStoredWatermark(nats: Nats): Promise<number> {
  return readWatermark(nats, scorerConsumer)
}

/**
 * @returns the sequence up to which every message is decided
 * @throws when the broker does not answer
 */
export function readDecidedWatermark(nats: Nats): Promise<number> {
  return readWatermark(nats, deciderConsumer)
}

/**
 * The low watermark of the telemetry stream: every message up to it is stored and decided.
 * @throws when the broker does not answer
 */
export async function readLowWatermark(nats: Nats): Promise<number> {
  const [stored, decided] = await Promise.all([
    readStoredWatermark(nats),
    readDecidedWatermark(nats),
  ])
  return Math.min(stored, decided)
}

async function readWatermark(nats: Nats, durable: string): Promise<number> {
  const info = await nats.manager.consumers.info(telemetryStream, durable)
  // With nothing in hand all that was delivered is done, also behind what aged out unseen.
  return info.num_ack_pending === 0 ? info.delivered.stream_seq : info.ack_floor.stream_seq
}
