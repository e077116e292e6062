/** The settings of all streams and of their durable consumers, as the server takes them. */
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats'
import { telemetryStreamBytes } from '#shared/core/base/limits/stream.ts'
import type { Nats } from '../connection.ts'
import { alertsConsumers, toAlertsStream } from './alerts-stream.ts'
import { listBucketConfigs } from './buckets.ts'
import { toDeadLetterStream } from './dead-letter-stream.ts'
import { telemetryConsumers, toTelemetryStreamConfig } from './telemetry-stream.ts'

/** Every stream and bucket, with the size and the replicas that the process's settings name. */
export function listStreamConfigs(nats: Nats): Partial<StreamConfig>[] {
  const bytesMax = nats.telemetryBytesMax ?? telemetryStreamBytes
  const streams = [
    ...nats.telemetryStreams.map((stream) => toTelemetryStreamConfig(stream, bytesMax)),
    toAlertsStream(),
    toDeadLetterStream(),
    ...listBucketConfigs(),
  ]
  return streams.map((stream) => ({
    ...stream,
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    num_replicas: nats.replicas ?? 1,
  }))
}

/** By durable name, with those of every stream that there can be. A scorer drops poison itself; any other failure is retried without limit. */
export const consumerConfigs: Record<string, { stream: string; config: Partial<ConsumerConfig> }> =
  Object.fromEntries(
    [...telemetryConsumers, ...alertsConsumers].map(
      ({ durable, stream, subject, ackWaitMs, pendingMax }) => [
        durable,
        {
          stream,
          config: {
            durable_name: durable,
            filter_subject: subject,
            ack_policy: AckPolicy.Explicit,
            deliver_policy: DeliverPolicy.All,
            ack_wait: nanos(ackWaitMs),
            max_deliver: -1,
            max_ack_pending: pendingMax,
          },
        },
      ],
    ),
  )
