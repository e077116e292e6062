/**
 * How far the stream is stored without a gap: every message up to there has been acknowledged by
 * the scorer that stored it, whichever of them that was. What is decided only up to there is
 * decided with everything before it in ClickHouse.
 */
import { scorerConsumer, telemetryStream } from '#shared/core/messages.ts'
import type { Nats } from './nats.ts'

/**
 * @returns the sequence of the last message of the stored beginning of the stream
 * @throws when the broker does not answer
 */
export async function readStoredFloor(nats: Nats): Promise<number> {
  const info = await nats.manager.consumers.info(telemetryStream, scorerConsumer)
  // With nothing in hand all that was delivered is stored, also behind what aged out unseen.
  return info.num_ack_pending === 0 ? info.delivered.stream_seq : info.ack_floor.stream_seq
}
