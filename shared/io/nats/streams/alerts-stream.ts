/**
 * The alerts stream: hints that deliveries are due. The rows in Postgres are the truth, so a full
 * stream discards its oldest hints and the sweep of the delivery process finds their deliveries.
 */
import { DiscardPolicy, nanos, type StreamConfig } from 'nats'
import { hourMs } from '#shared/core/base/instants.ts'
import {
  alertsStream,
  deliveryConsumer,
  deliveryHintSubject,
} from '#shared/core/telemetry/nats-names.ts'

export function toAlertsStream(): Partial<StreamConfig> {
  return {
    name: alertsStream,
    subjects: ['alerts.>'],
    discard: DiscardPolicy.Old,
    max_bytes: 256 * 1024 ** 2,
    max_age: nanos(hourMs),
    duplicate_window: nanos(2 * 60_000),
  }
}

export const alertsConsumers = [
  {
    durable: deliveryConsumer,
    stream: alertsStream,
    subject: deliveryHintSubject,
    ackWaitMs: 30_000,
    pendingMax: 4_096,
  },
]
