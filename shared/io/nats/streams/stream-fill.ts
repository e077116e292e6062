/** Reads how full a stream is. */
import type { StreamFill } from '#shared/core/telemetry/streams/stream-capacity.ts'
import type { Nats } from '../connection.ts'

export type StreamFillReading = StreamFill & {
  /** Age of the oldest message in seconds, by the server's clock; 0 for an empty stream. */
  oldestSeconds: number
}

/** @throws when the broker does not answer, or the stream does not exist */
export async function readStreamFill(nats: Nats, stream: string): Promise<StreamFillReading> {
  const { config, state, ts } = await nats.manager.streams.info(stream)
  const serverMs = Date.parse(ts ?? '') || Date.now()
  const oldestMs = state.messages === 0 ? serverMs : Date.parse(String(state.first_ts))
  return {
    bytes: state.bytes,
    bytesMax: config.max_bytes > 0 ? config.max_bytes : Number.POSITIVE_INFINITY,
    messages: state.messages,
    firstSequence: state.first_seq,
    lastSequence: state.last_seq,
    oldestSeconds: Math.max(0, (serverMs - oldestMs) / 1_000),
  }
}
