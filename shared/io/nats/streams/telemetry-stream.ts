/**
 * A telemetry stream: every accepted event, until a scorer has stored it and a scorer has decided
 * on it. A full stream refuses new messages, so no accepted event is lost; scorers trim it before
 * it is full. It uses limits retention: a work queue would forget its message ids on a restart, and
 * an event must stay replayable until ClickHouse has it.
 */
import { DiscardPolicy, nanos, type StreamConfig } from 'nats'
import { hourMs } from '#shared/core/base/instants.ts'
import { publishTimeoutMs } from '#shared/core/base/limits/ingest.ts'
import {
  type TelemetryStream,
  telemetryStreams,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'

/** How long a delivered message is leased without a heartbeat. Too short only causes a repeat. */
export const ackWaitMs = 6_000

/** @param bytesMax size of the stream */
export function toTelemetryStreamConfig(
  { stream, subjects }: TelemetryStream,
  bytesMax: number,
): Partial<StreamConfig> {
  return {
    name: stream,
    subjects: [subjects],
    discard: DiscardPolicy.New,
    max_bytes: bytesMax,
    max_age: nanos(72 * hourMs),
    // Sixty times as long as an edge retries a publish. The server keeps up to three windows of
    // message ids in memory, and reads one window of messages when it starts.
    duplicate_window: nanos(60 * publishTimeoutMs),
  }
}

/** Four scorers, each with a full batch of 2,048 messages in work and another one fetched. */
export const pendingMax = 16_384

/** After `ackWaitMs` another scorer gets the messages of a killed one. */
export const telemetryConsumers = telemetryStreams.flatMap(({ stream, subject, scorer, decider }) =>
  [scorer, decider].map((durable) => ({ durable, stream, subject, ackWaitMs, pendingMax })),
)
