/**
 * The NATS subjects that each process may use, and the account that it is in.
 *
 * A permission on subjects alone is no wall inside one account: the server answers on any reply
 * subject that a client names, and acts on what a request says (a consumer that delivers to a
 * subject, a stream that copies others), and checks none of that. So JetStream lies in an account
 * of its own with `migrate` and the console, which hold the keys of what they write. Every other
 * process is in its own account and imports single subjects. What the server then does for it,
 * replies included, stays in its own account. No import is one that creates or changes a stream or
 * a consumer: such a request would be carried out among the streams.
 *
 * The rights are those to every telemetry stream that there can be, so a further stream needs no
 * change of the server.
 */
import {
  acceptedBucket,
  alertsStream,
  deadLetterStream,
  deadLetterSubject,
  deliveryConsumer,
  deliveryHintSubject,
  directoryChanges,
  lostSubjects,
  removalsBucket,
  requestLogAnswerSubject,
  requestLogQuerySubject,
  staleSecretBucket,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'
import { telemetryStreams } from '#shared/core/telemetry/streams/telemetry-streams.ts'

/** The account with JetStream, and those of the processes that import subjects from it. */
export const jetstreamAccount = 'DEVICE_INTELLIGENCE'
export type NatsAccount = typeof jetstreamAccount | 'DI_INGEST' | 'DI_SCORER' | 'DI_DELIVERY'

/** Subjects of NATS, with `*` and `>`. */
export type NatsPermissions = {
  /** In another account than JetStream's, `publish` and `subscribe` are also all that it imports. */
  account: NatsAccount
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
/** Creates a stream; it cannot change an existing one. */
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
const consumeOf = (stream: string, durable: string) => [
  consumerInfo(stream, durable),
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
const takeFromDurables = durables.flatMap(([stream, durable]) => [
  `${api}.CONSUMER.DELETE.${stream}.${durable}`,
  `${api}.CONSUMER.MSG.NEXT.${stream}.${durable}`,
])

/** Publishes telemetry, reads the tenant directory, announces itself there, answers queries. */
const ingest: NatsPermissions = {
  account: 'DI_INGEST',
  publish: [
    ...telemetryStreams.map(({ subject }) => subject),
    `$KV.${tenantsBucket}.edge.*`,
    `$KV.${staleSecretBucket}.>`,
    `$KV.${acceptedBucket}.>`,
    `${api}.INFO`,
    `${api}.DIRECT.GET.${tenants}`,
    `${api}.DIRECT.GET.${tenants}.>`,
    ...infoOf(tenants, staleSecretRequests, accepted, ...telemetry),
    // The low watermark, for the free space of the stream.
    ...telemetryDurables.map(([stream, durable]) => consumerInfo(stream, durable)),
    requestLogAnswerSubject('*'),
  ],
  subscribe: [...inboxOf('ingest'), `${directoryChanges}.>`, requestLogQuerySubject],
}

/** Consumes telemetry, trims the stream, stores dead letters, publishes delivery hints. */
const scorer: NatsPermissions = {
  account: 'DI_SCORER',
  publish: [
    deadLetterSubject,
    deliveryHintSubject,
    `${api}.INFO`,
    ...infoOf(...telemetry, deadLetterStream, alertsStream),
    ...telemetryDurables.flatMap(([stream, durable]) => consumeOf(stream, durable)),
    // A purge destroys no more than the scorer could by acknowledging what it did not store.
    ...telemetry.flatMap((stream) => [
      `${api}.STREAM.MSG.GET.${stream}`,
      `${api}.STREAM.PURGE.${stream}`,
    ]),
  ],
  subscribe: inboxOf('scorer'),
}

/** Consumes delivery hints. */
const delivery: NatsPermissions = {
  account: 'DI_DELIVERY',
  publish: [
    `${api}.INFO`,
    ...infoOf(alertsStream),
    ...consumeOf(alertsStream, deliveryConsumer),
    `${api}.STREAM.MSG.GET.${alertsStream}`,
  ],
  subscribe: inboxOf('delivery'),
}

/**
 * Writes the tenant directory, reads the reports of edges and queries them, erases from streams,
 * and creates streams, buckets and consumers that were lost. In the account of JetStream the list
 * only prevents mistakes.
 */
const console: NatsPermissions = {
  account: jetstreamAccount,
  publish: [
    deadLetterSubject,
    deliveryHintSubject,
    `$KV.${tenantsBucket}.>`,
    `$KV.${removalsBucket}.>`,
    `${api}.INFO`,
    ...[tenants, staleSecretRequests, accepted, removals, ...telemetry, deadLetterStream].flatMap(
      readOf,
    ),
    ...infoOf(alertsStream),
    ...createOf(tenants, staleSecretRequests, accepted, removals, ...telemetry),
    ...createOf(deadLetterStream, alertsStream),
    ...durables.flatMap(([stream, durable, subject]) => durableOf(stream, durable, subject)),
    // Markers of policies that no tenant uses any more.
    `${api}.STREAM.PURGE.${tenants}`,
    ...telemetry.map((stream) => `${api}.STREAM.MSG.DELETE.${stream}`),
    `${api}.STREAM.MSG.DELETE.${deadLetterStream}`,
    requestLogQuerySubject,
  ],
  denyPublish: takeFromDurables,
  subscribe: [...inboxOf('console'), requestLogAnswerSubject('*'), ...lostSubjects],
}

/** Creates and changes streams and consumers, without reading or writing messages. */
const migrate: NatsPermissions = {
  account: jetstreamAccount,
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
