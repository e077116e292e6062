/** The dead-letter stream: messages and events that can never be processed, for 30 days. */
import { DiscardPolicy, nanos, type StreamConfig } from 'nats'
import { dayMs } from '#shared/core/base/instants.ts'
import { deadLetterStream } from '#shared/core/telemetry/nats-names.ts'

export function toDeadLetterStream(): Partial<StreamConfig> {
  return {
    name: deadLetterStream,
    subjects: ['dead.>'],
    discard: DiscardPolicy.New,
    max_bytes: 1024 ** 3,
    max_age: nanos(30 * dayMs),
    duplicate_window: nanos(10 * 60_000),
  }
}
