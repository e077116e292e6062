/**
 * The NATS subjects that each process may use. The JetStream API is subjects as well, so the
 * permission to read a stream is one to create a consumer. The rights are those to every telemetry
 * stream that there can be, so a further stream needs no change of the server.
 */
import {
  acceptedBucket,
  alertsStream,
  deadLetterStream,
  deadLetterSubject,
  deliveryConsumer,
  deliveryHintSubject,
  removalsBucket,
  requestLogAnswerSubject,
  requestLogQuerySubject,
  staleSecretBucket,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'
import { telemetryStreams } from '#shared/core/telemetry/telemetry-streams.ts'

/** Subjects of NATS, with `*` and `>`. */
export type NatsPermissions = {
  publish: readonly string[]
  /** Exceptions of `publish`. */
  denyPublish?: readonly string[]
  subscribe: readonly string[]
}

const api = '$JS.API'
const bucketStream = (bucket: string) => `KV_${bucket}`
const tenants = bucketStream(tenantsBucket)
const staleSecretRequests = bucketStream(staleSecretBucket)
const accepted = bucketStream(acceptedBucket)
const removals = bucketStream(removalsBucket)

/** The inbox of replies, which no other user may read. */
const inboxOf = (process: string) => [`_INBOX.${process}.>`]
const infoOf = (...streams: string[]) => streams.map((stream) => `${api}.STREAM.INFO.${stream}`)
/** Creates a stream if it is missing; it cannot change an existing one. */
const createOf = (...streams: string[]) => streams.map((stream) => `${api}.STREAM.CREATE.${stream}`)
const consumerInfo = (stream: string, durable: string) =>
  `${api}.CONSUMER.INFO.${stream}.${durable}`

/** Creates or changes a durable consumer. */
const durableOf = (stream: string, durable: string, subject: string) => [
  consumerInfo(stream, durable),
  `${api}.CONSUMER.CREATE.${stream}.${durable}.${subject}`,
  `${api}.CONSUMER.DURABLE.CREATE.${stream}.${durable}`,
]

/** Pulls messages of a durable consumer and acknowledges them. */
const consumeOf = (stream: string, durable: string, subject: string) => [
  ...durableOf(stream, durable, subject),
  `${api}.CONSUMER.MSG.NEXT.${stream}.${durable}`,
  `$JS.ACK.${stream}.${durable}.>`,
]

/** Reads a whole stream with ephemeral consumers, and single messages. */
const readOf = (stream: string) => [
  ...infoOf(stream),
  `${api}.CONSUMER.CREATE.${stream}`,
  `${api}.CONSUMER.CREATE.${stream}.>`,
  `${api}.CONSUMER.INFO.${stream}.*`,
  `${api}.CONSUMER.MSG.NEXT.${stream}.*`,
  `${api}.CONSUMER.DELETE.${stream}.*`,
  `${api}.STREAM.MSG.GET.${stream}`,
  `${api}.DIRECT.GET.${stream}`,
  `${api}.DIRECT.GET.${stream}.>`,
  `$JS.FC.${stream}.>`,
]

/** The durable consumers of other processes, which readers of a whole stream must not touch. */
const telemetryDurables = telemetryStreams.flatMap(({ stream, subject, scorer, decider }) =>
  [scorer, decider].map((durable) => [stream, durable, subject] as const),
)
const durables = [
  ...telemetryDurables,
  [alertsStream, deliveryConsumer, deliveryHintSubject],
] as const
/** The names of the telemetry streams. */
const telemetry = telemetryStreams.map(({ stream }) => stream)
const touchDurables = durables.flatMap(([stream, durable]) => [
  `${api}.CONSUMER.CREATE.${stream}.${durable}.>`,
  `${api}.CONSUMER.CREATE.${stream}.${durable}`,
  `${api}.CONSUMER.DELETE.${stream}.${durable}`,
  `${api}.CONSUMER.MSG.NEXT.${stream}.${durable}`,
])

/** Publishes telemetry, watches the tenant directory, announces itself there, answers queries. */
const ingest: NatsPermissions = {
  publish: [
    ...telemetryStreams.map(({ subject }) => subject),
    `$KV.${tenantsBucket}.edge.*`,
    `$KV.${staleSecretBucket}.>`,
    `$KV.${acceptedBucket}.>`,
    `${api}.INFO`,
    ...readOf(tenants),
    ...infoOf(...telemetry, staleSecretRequests, accepted),
    ...createOf(...telemetry, tenants, staleSecretRequests, accepted),
    // The low watermark, for the free space of the stream.
    ...telemetryDurables.map(([stream, durable]) => consumerInfo(stream, durable)),
    requestLogAnswerSubject('*'),
  ],
  subscribe: [...inboxOf('ingest'), requestLogQuerySubject],
}

/** Consumes telemetry, trims the stream, stores dead letters, publishes delivery hints. */
const scorer: NatsPermissions = {
  publish: [
    deadLetterSubject,
    deliveryHintSubject,
    `${api}.INFO`,
    ...infoOf(...telemetry, deadLetterStream, alertsStream),
    ...createOf(...telemetry, deadLetterStream),
    ...telemetryDurables.flatMap((durable) => consumeOf(...durable)),
    ...telemetry.flatMap((stream) => [
      `${api}.STREAM.MSG.GET.${stream}`,
      `${api}.STREAM.PURGE.${stream}`,
    ]),
  ],
  subscribe: inboxOf('scorer'),
}

/** Consumes delivery hints. */
const delivery: NatsPermissions = {
  publish: [
    `${api}.INFO`,
    ...infoOf(alertsStream),
    ...createOf(alertsStream),
    ...consumeOf(alertsStream, deliveryConsumer, deliveryHintSubject),
    `${api}.STREAM.MSG.GET.${alertsStream}`,
  ],
  subscribe: inboxOf('delivery'),
}

/** Writes the tenant directory, reads the reports of edges and queries them, erases from streams. */
const console: NatsPermissions = {
  publish: [
    deadLetterSubject,
    deliveryHintSubject,
    `$KV.${tenantsBucket}.>`,
    `$KV.${removalsBucket}.>`,
    `${api}.INFO`,
    ...[tenants, staleSecretRequests, accepted, removals, ...telemetry, deadLetterStream].flatMap(
      readOf,
    ),
    ...createOf(tenants, staleSecretRequests, accepted, removals),
    // Markers of policies that no tenant uses any more.
    `${api}.STREAM.PURGE.${tenants}`,
    ...telemetry.map((stream) => `${api}.STREAM.MSG.DELETE.${stream}`),
    `${api}.STREAM.MSG.DELETE.${deadLetterStream}`,
    requestLogQuerySubject,
  ],
  denyPublish: touchDurables,
  subscribe: [...inboxOf('console'), requestLogAnswerSubject('*')],
}

/** Creates and changes streams and consumers, without reading or writing messages. */
const migrate: NatsPermissions = {
  publish: [
    `${api}.INFO`,
    `${api}.STREAM.INFO.*`,
    `${api}.STREAM.CREATE.*`,
    `${api}.STREAM.UPDATE.*`,
    ...durables.flatMap(([stream, durable, subject]) => durableOf(stream, durable, subject)),
  ],
  subscribe: inboxOf('migrate'),
}

export const natsPermissions = { ingest, scorer, delivery, console, migrate } as const
