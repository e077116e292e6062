/**
 * Streams, buckets and consumers as the service wants them: created when missing, updated when they
 * may be, and compared with what the server echoes, so that a setting the server silently ignored
 * stops the start instead of surprising us later.
 */
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  type KV,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats'
import pRetry from 'p-retry'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { publishTimeoutMs } from '#shared/core/base/limits/ingest.ts'
import { telemetryStreamBytes, telemetryStreamBytesMin } from '#shared/core/base/limits/stream.ts'
import {
  acceptedBucket,
  alertsStream,
  deadLetterStream,
  deciderConsumer,
  deliveryConsumer,
  deliveryHintSubject,
  scorerConsumer,
  staleSecretBucket,
  telemetryStream,
  telemetrySubject,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'
import type { Log } from '#shared/io/process/log.ts'
import { openAcceptedBucket } from '#shared/io/reconciliation/accepted-claims.ts'
import { openStaleSecretBucket } from '#shared/io/tenants/stale-secret-requests.ts'
import type { Nats } from './connection.ts'
import { isForming, isNotFound, isOutOfStorage } from './jetstream-errors.ts'

/** How long a message is its taker's without a heartbeat. Too short only means a repeat. */
export const ackWaitMs = 6_000

/**
 * Limits retention everywhere: a work queue forgets its message ids on restart, and an event must
 * stay replayable until ClickHouse has it. Full streams refuse what is new: nothing accepted is
 * lost. Scorers remove what is stored and decided from the telemetry stream before it is full.
 */
function streamConfigs(telemetryBytes: number, replicas: number): Partial<StreamConfig>[] {
  const common = {
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    num_replicas: replicas,
  }
  return [
    {
      ...common,
      name: telemetryStream,
      subjects: ['telemetry.>'],
      max_bytes: telemetryBytes,
      max_age: nanos(72 * hourMs),
      // Sixty times as long as an edge retries a publish. The server frees ids once three windows
      // of them are in its memory, and reads the messages of a window again when it starts.
      duplicate_window: nanos(60 * publishTimeoutMs),
    },
    {
      ...common,
      name: alertsStream,
      subjects: ['alerts.>'],
      max_bytes: 256 * 1024 ** 2,
      // Hints only: the sweep finds every delivery whose hint aged out.
      max_age: nanos(hourMs),
      discard: DiscardPolicy.Old,
      duplicate_window: nanos(2 * 60 * 1000),
    },
    {
      ...common,
      name: deadLetterStream,
      subjects: ['dead.>'],
      max_bytes: 1024 ** 3,
      max_age: nanos(30 * dayMs),
      duplicate_window: nanos(10 * 60 * 1000),
    },
  ]
}

/** Four scorers with a full batch of 2,048 in hand and another ahead. */
const scorersPendingMax = 16_384

export const consumerConfigs: Record<string, { stream: string; config: Partial<ConsumerConfig> }> =
  {
    // What a killed scorer had in hand is another's after ack_wait; a living one says so meanwhile.
    // Poison is dropped by the scorer itself; anything else is infrastructure and is retried.
    [scorerConsumer]: {
      stream: telemetryStream,
      config: {
        durable_name: scorerConsumer,
        filter_subject: telemetrySubject,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.All,
        ack_wait: nanos(ackWaitMs),
        max_deliver: -1,
        max_ack_pending: scorersPendingMax,
      },
    },
    [deciderConsumer]: {
      stream: telemetryStream,
      config: {
        durable_name: deciderConsumer,
        filter_subject: telemetrySubject,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.All,
        ack_wait: nanos(ackWaitMs),
        max_deliver: -1,
        max_ack_pending: scorersPendingMax,
      },
    },
    [deliveryConsumer]: {
      stream: alertsStream,
      config: {
        durable_name: deliveryConsumer,
        filter_subject: deliveryHintSubject,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.All,
        ack_wait: nanos(30_000),
        max_deliver: -1,
        max_ack_pending: 4_096,
      },
    },
  }

/**
 * Creates or updates every stream, bucket and consumer. Safe to run at once from several processes.
 * Consumers have as many replicas as their stream.
 * @throws Error naming the setting that the server does not honour
 */
export async function ensureStreams(nats: Nats): Promise<void> {
  const telemetryBytes = nats.telemetryBytesMax ?? telemetryStreamBytes
  for (const config of streamConfigs(telemetryBytes, nats.replicas ?? 1)) {
    const name = config.name!
    const present = await nats.manager.streams.info(name).catch(nullIfMissing)
    if (present === null) {
      await addStream(nats, config)
      continue
    }
    const wanted = { ...config, ...toKept(nats, present.config) }
    const info = await nats.manager.streams.update(name, { ...present.config, ...wanted })
    requireEcho(`stream ${name}`, wanted, info.config)
  }
  for (const { stream, config } of Object.values(consumerConfigs)) {
    const durable = config.durable_name ?? ''
    const present = await nats.manager.consumers.info(stream, durable).catch(nullIfMissing)
    // The server refuses to create what exists with other settings, as after an upgrade of ours,
    // and answers an update with the settings from before it.
    if (present === null) await nats.manager.consumers.add(stream, config)
    else await nats.manager.consumers.update(stream, durable, config)
    const info = await nats.manager.consumers.info(stream, durable)
    requireEcho(`consumer ${config.durable_name}`, config, info.config)
  }
  await openTenantsBucket(nats)
  await openStaleSecretBucket(nats)
  await openAcceptedBucket(nats)
  for (const bucket of buckets) await spreadBucket(nats, bucket)
}

/**
 * A stream reserves its largest size when it is made. Where no size is set and the server has less,
 * the telemetry stream asks for half as much until the server agrees.
 * @throws Error when a size is set, or the server has less than the least
 */
async function addStream(nats: Nats, config: Partial<StreamConfig>): Promise<void> {
  try {
    const info = await nats.manager.streams.add(config)
    requireEcho(`stream ${config.name}`, config, info.config)
  } catch (error) {
    const half = Math.floor((config.max_bytes ?? 0) / 2)
    const isFree = config.name === telemetryStream && (nats.telemetryBytesMax ?? null) === null
    if (!isFree || half < telemetryStreamBytesMin || !isOutOfStorage(error)) throw error
    await addStream(nats, { ...config, max_bytes: half })
  }
}

/**
 * Makes the stream of a durable consumer and the consumer where they are missing, as on a broker
 * whose store was lost. What exists is left as it is: a process that takes messages may not change
 * a stream. What a scorer writes to is made with it.
 */
export async function restoreConsumer(nats: Nats, durable: string): Promise<void> {
  const { stream, config } = consumerConfigs[durable]!
  await restoreStream(nats, stream)
  if (stream === telemetryStream) await restoreStream(nats, deadLetterStream)
  const present = await nats.manager.consumers.info(stream, durable).catch(nullIfMissing)
  if (present === null) await nats.manager.consumers.add(stream, config)
}

/** Makes a stream where it is missing. */
export async function restoreStream(nats: Nats, stream: string): Promise<void> {
  if ((await nats.manager.streams.info(stream).catch(nullIfMissing)) !== null) return
  const configs = streamConfigs(nats.telemetryBytesMax ?? telemetryStreamBytes, nats.replicas ?? 1)
  await addStream(nats, configs.find(({ name }) => name === stream)!)
}

/**
 * `ensureStreams` for servers that have just been started: three of them need seconds to be a
 * cluster, and after a change a stream has no leader for a moment.
 * @throws what `ensureStreams` does once `limitMs` have passed
 */
export async function ensureStreamsOnceFormed(
  nats: Nats,
  { log, limitMs }: { log: Log; limitMs: number },
): Promise<void> {
  await pRetry(() => ensureStreams(nats), {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 250,
    maxTimeout: 2_000,
    maxRetryTime: limitMs,
    shouldRetry: ({ error }) => isForming(error),
    onFailedAttempt: ({ error }) => log.warn({ err: error }, 'the streams cannot be made yet'),
  })
}

const buckets = [tenantsBucket, staleSecretBucket, acceptedBucket]

/** Opening a bucket that exists leaves it on the servers it is on. */
async function spreadBucket(nats: Nats, bucket: string): Promise<void> {
  const name = `KV_${bucket}`
  const { config } = await nats.manager.streams.info(name)
  const wanted = { num_replicas: nats.replicas ?? config.num_replicas }
  if (wanted.num_replicas === config.num_replicas) return
  const info = await nats.manager.streams.update(name, { ...config, ...wanted })
  requireEcho(`bucket ${bucket}`, wanted, info.config)
}

/**
 * The tenant directory's projection: one entry per tenant, one per policy document, and what each
 * edge announces of itself.
 */
export function openTenantsBucket(nats: Nats): Promise<KV> {
  return nats.jetstream.views.kv(tenantsBucket, {
    history: 1,
    storage: StorageType.File,
    replicas: nats.replicas ?? 1,
    maxValueSize: 512 * 1024,
  })
}

/** What an operator may have set on the stream itself, unless the configuration says otherwise. */
function toKept(nats: Nats, { name, max_bytes, num_replicas }: StreamConfig) {
  const set = name === telemetryStream ? nats.telemetryBytesMax : null
  return { max_bytes: set ?? max_bytes, num_replicas: nats.replicas ?? num_replicas }
}

function nullIfMissing(error: unknown): null {
  if (isNotFound(error)) return null
  throw error
}

function requireEcho(what: string, wanted: object, echoed: object): void {
  for (const [name, value] of Object.entries(wanted)) {
    const got = (echoed as Record<string, unknown>)[name]
    if (JSON.stringify(got) === JSON.stringify(value)) continue
    throw new Error(
      `${what}: the server did not take ${name}: wanted ${JSON.stringify(value)}, got ` +
        `${JSON.stringify(got)}. Is the nats-server older than 2.10?`,
    )
  }
}
