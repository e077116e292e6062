/**
 * The subjects of NATS that each process may use: the NATS side of `process-rights.ts`. JetStream
 * is asked over subjects as well, so a right to read a stream is one to ask for a consumer of it.
 */
import {
  acceptedBucket,
  alertsStream,
  deadLetterStream,
  deadLetterSubject,
  deciderConsumer,
  deliveryConsumer,
  deliveryHintSubject,
  scorerConsumer,
  staleSecretBucket,
  telemetryStream,
  telemetrySubject,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'

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

/** Answers, which no other user may read. */
const inboxOf = (process: string) => [`_INBOX.${process}.>`]
const infoOf = (...streams: string[]) => streams.map((stream) => `${api}.STREAM.INFO.${stream}`)
/** Makes a stream where it is missing; one that exists cannot be changed by it. */
const makeOf = (...streams: string[]) => streams.map((stream) => `${api}.STREAM.CREATE.${stream}`)
const consumerInfo = (stream: string, durable: string) =>
  `${api}.CONSUMER.INFO.${stream}.${durable}`

/** Makes a durable consumer, or changes it. */
const durableOf = (stream: string, durable: string, subject: string) => [
  consumerInfo(stream, durable),
  `${api}.CONSUMER.CREATE.${stream}.${durable}.${subject}`,
  `${api}.CONSUMER.DURABLE.CREATE.${stream}.${durable}`,
]

/** Takes messages of a durable consumer and acknowledges them. */
const takeOf = (stream: string, durable: string, subject: string) => [
  ...durableOf(stream, durable, subject),
  `${api}.CONSUMER.MSG.NEXT.${stream}.${durable}`,
  `$JS.ACK.${stream}.${durable}.>`,
]

/** Reads a whole stream by consumers of its own, and single messages. */
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

/** The work of others, which readers of a whole stream leave alone. */
const durables = [
  [telemetryStream, scorerConsumer, telemetrySubject],
  [telemetryStream, deciderConsumer, telemetrySubject],
  [alertsStream, deliveryConsumer, deliveryHintSubject],
] as const
const touchDurables = durables.flatMap(([stream, durable]) => [
  `${api}.CONSUMER.CREATE.${stream}.${durable}.>`,
  `${api}.CONSUMER.CREATE.${stream}.${durable}`,
  `${api}.CONSUMER.DELETE.${stream}.${durable}`,
  `${api}.CONSUMER.MSG.NEXT.${stream}.${durable}`,
])

/** Publishes telemetry, follows the tenant directory, announces itself there. */
const ingest: NatsPermissions = {
  publish: [
    telemetrySubject,
    `$KV.${tenantsBucket}.edge.*`,
    `$KV.${staleSecretBucket}.>`,
    `$KV.${acceptedBucket}.>`,
    `${api}.INFO`,
    ...readOf(tenants),
    ...infoOf(telemetryStream, staleSecretRequests, accepted),
    ...makeOf(telemetryStream, tenants, staleSecretRequests, accepted),
    // How far the stream is worked off, for the room that is left in it.
    consumerInfo(telemetryStream, scorerConsumer),
    consumerInfo(telemetryStream, deciderConsumer),
  ],
  subscribe: inboxOf('ingest'),
}

/** Takes telemetry, removes what is done, puts poison aside, hints at deliveries. */
const scorer: NatsPermissions = {
  publish: [
    deadLetterSubject,
    deliveryHintSubject,
    `${api}.INFO`,
    ...infoOf(telemetryStream, deadLetterStream, alertsStream),
    ...makeOf(telemetryStream, deadLetterStream),
    ...takeOf(telemetryStream, scorerConsumer, telemetrySubject),
    ...takeOf(telemetryStream, deciderConsumer, telemetrySubject),
    `${api}.STREAM.MSG.GET.${telemetryStream}`,
    `${api}.STREAM.PURGE.${telemetryStream}`,
  ],
  subscribe: inboxOf('scorer'),
}

/** Takes hints. */
const delivery: NatsPermissions = {
  publish: [
    `${api}.INFO`,
    ...infoOf(alertsStream),
    ...makeOf(alertsStream),
    ...takeOf(alertsStream, deliveryConsumer, deliveryHintSubject),
    `${api}.STREAM.MSG.GET.${alertsStream}`,
  ],
  subscribe: inboxOf('delivery'),
}

/** Writes the tenant directory, reads what edges report, erases from streams. */
const console: NatsPermissions = {
  publish: [
    deadLetterSubject,
    deliveryHintSubject,
    `$KV.${tenantsBucket}.>`,
    `${api}.INFO`,
    ...[tenants, staleSecretRequests, accepted, telemetryStream, deadLetterStream].flatMap(readOf),
    ...makeOf(tenants, staleSecretRequests, accepted),
    // Markers of policies that no tenant uses any more.
    `${api}.STREAM.PURGE.${tenants}`,
    `${api}.STREAM.MSG.DELETE.${telemetryStream}`,
    `${api}.STREAM.MSG.DELETE.${deadLetterStream}`,
  ],
  denyPublish: touchDurables,
  subscribe: inboxOf('console'),
}

/** Makes and changes streams and consumers; reads and writes nothing in them. */
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
