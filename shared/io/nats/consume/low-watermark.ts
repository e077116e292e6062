/**
 * Low watermarks of a telemetry stream: the sequence up to which every message is stored, or
 * decided, by any scorer. Scorers decide only below the stored watermark, so everything before a
 * decided event is in ClickHouse.
 */
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from '../connection.ts'

/**
 * @returns the sequence up to which every message is stored
 * @throws when the broker does not answer
 */
export function readStoredWatermark(nats: Nats, stream: TelemetryStream): Promise<number> {
  return readWatermark(nats, stream, stream.scorer)
}

/**
 * @returns the sequence up to which every message is decided
 * @throws when the broker does not answer
 */
export function readDecidedWatermark(nats: Nats, stream: TelemetryStream): Promise<number> {
  return readWatermark(nats, stream, stream.decider)
}

/**
 * @returns the sequence up to which every message is stored and decided
 * @throws when the broker does not answer
 */
export async function readLowWatermark(nats: Nats, stream: TelemetryStream): Promise<number> {
  const [stored, decided] = await Promise.all([
    readStoredWatermark(nats, stream),
    readDecidedWatermark(nats, stream),
  ])
  return Math.min(stored, decided)
}

async function readWatermark(
  nats: Nats,
  { stream }: TelemetryStream,
  durable: string,
): Promise<number> {
  const info = await nats.manager.consumers.info(stream, durable)
  // Without unacknowledged messages all delivered ones are done, also behind a message that expired
  // before its delivery.
  return info.num_ack_pending === 0 ? info.delivered.stream_seq : info.ack_floor.stream_seq
}
