/** Reads back the telemetry stream and the progress of its consumers. */
import type { JsMsg } from 'nats'
import { type AcceptedEvent, decodeBatch } from '#shared/core/telemetry/event-batch.ts'
import {
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
} from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '#shared/io/nats/connection.ts'

/** Every message of the stream, in one pass. */
export async function* readMessages(nats: Nats): AsyncGenerator<JsMsg> {
  const { state } = await nats.manager.streams.info(telemetryStream)
  if (state.messages === 0) return
  const consumer = await nats.jetstream.consumers.get(telemetryStream)
  for await (const message of await consumer.consume({ max_messages: 1_000 })) {
    yield message
    if (message.seq >= state.last_seq) return
  }
}

/** The events of one message. @throws when one cannot be decoded */
export function decodeEvents(message: JsMsg): AcceptedEvent[] {
  const { events, invalid } = decodeBatch(message.data, message.seq)
  if (invalid.length > 0) throw new Error(`message ${message.seq}: ${invalid[0]!.detail}`)
  return events
}

/** Every event of the stream, in its order. */
export async function readEvents(nats: Nats): Promise<AcceptedEvent[]> {
  const events: AcceptedEvent[] = []
  for await (const message of readMessages(nats)) events.push(...decodeEvents(message))
  return events
}

/** How many messages contain each event, by its id. */
export async function countEvents(nats: Nats): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const { event_id } of await readEvents(nats)) {
    counts.set(event_id, (counts.get(event_id) ?? 0) + 1)
  }
  return counts
}

export type Progress = {
  /** The last message of the stream. */
  lastSequence: number
  /** Every message up to this one is acknowledged by both consumers. */
  acknowledged: number
  /** Messages that the slower consumer has not received. */
  pending: number
}

/** The progress of the scorer's two consumers in the telemetry stream. */
export async function readProgress({ manager }: Nats): Promise<Progress> {
  const { state } = await manager.streams.info(telemetryStream)
  const infos = await Promise.all(
    [scorerConsumer, deciderConsumer].map((name) => manager.consumers.info(telemetryStream, name)),
  )
  return {
    lastSequence: state.last_seq,
    acknowledged: Math.min(...infos.map((info) => info.ack_floor.stream_seq)),
    pending: Math.max(...infos.map((info) => info.num_pending)),
  }
}
