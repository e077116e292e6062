/**
 * Creates or updates every stream, consumer and bucket, and compares the result with what the
 * server reports: a setting that the server ignores fails the migration.
 */
import type { ConsumerConfig, StreamConfig } from 'nats'
import pRetry from 'p-retry'
import { telemetryStream } from '#shared/core/telemetry/nats-names.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Nats } from '../connection.ts'
import { isForming } from '../jetstream-errors.ts'
import { addStream, isTelemetryStream, nullIfMissing, requireEcho } from './restore-streams.ts'
import { consumerConfigs, listStreamConfigs } from './stream-configs.ts'

/**
 * Creates or updates every stream, bucket and consumer. Several processes may run it at once.
 * Consumers have as many replicas as their stream.
 * @returns the names of the streams that did not exist
 * @throws Error naming the setting that the server does not apply
 */
export async function ensureStreams(nats: Nats): Promise<string[]> {
  const streams = listStreamConfigs(nats)
  const created: string[] = []
  for (const config of streams) {
    if (await ensureStream(nats, config)) created.push(config.name!)
  }
  for (const { stream, config } of Object.values(consumerConfigs)) {
    if (!streams.some(({ name }) => name === stream)) continue
    const durable = config.durable_name ?? ''
    const present = await nats.manager.consumers.info(stream, durable).catch(nullIfMissing)
    // Where a consumer began cannot change, and differs after a replay.
    const wanted = present === null ? config : { ...config, ...toStart(present.config) }
    // `add` refuses a consumer with other settings, and `update` returns the settings from before
    // it, so read them again.
    if (present === null) await nats.manager.consumers.add(stream, wanted)
    else await nats.manager.consumers.update(stream, durable, wanted)
    const info = await nats.manager.consumers.info(stream, durable)
    requireEcho(`consumer ${durable}`, wanted, info.config)
  }
  return created
}

/** For servers that have just started. */
export type Forming = { log: Log; limitMs: number }

/**
 * `ensureStreams` for servers that have just started.
 * @returns what `ensureStreams` returns
 * @throws what `ensureStreams` throws, once `limitMs` have passed
 */
export const ensureStreamsOnceFormed = (nats: Nats, forming: Forming): Promise<string[]> =>
  onceFormed(() => ensureStreams(nats), forming)

/**
 * Whether a cluster has no telemetry, as one whose streams were never made, or were removed: a
 * server that is started as a member of a cluster on the store of a single server removes all that
 * it finds there.
 * @throws when the servers do not answer within `limitMs`
 */
export async function isEmptyCluster(nats: Nats, forming: Forming): Promise<boolean> {
  if (!isClustered(nats)) return false
  const find = () => nats.manager.streams.info(telemetryStream).catch(nullIfMissing)
  return (await onceFormed(find, forming)) === null
}

/** Whether the server is a member of a cluster. */
export const isClustered = ({ connection }: Nats): boolean => connection.info?.cluster !== undefined

/**
 * Does `work` once the servers are ready for it: three of them need seconds to form a cluster, and
 * after a change a stream has no leader for a moment.
 * @throws what `work` throws, once `limitMs` have passed
 */
export async function onceFormed<T>(work: () => Promise<T>, { log, limitMs }: Forming): Promise<T> {
  return await pRetry(work, {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 250,
    maxTimeout: 2_000,
    maxRetryTime: limitMs,
    shouldRetry: ({ error }) => isForming(error),
    onFailedAttempt: ({ error }) =>
      log.warn({ err: error }, 'the streams cannot be made yet; retrying'),
  })
}

/** @returns whether it did not exist */
async function ensureStream(nats: Nats, config: Partial<StreamConfig>): Promise<boolean> {
  const name = config.name!
  const present = await nats.manager.streams.info(name).catch(nullIfMissing)
  if (present === null) {
    await addStream(nats, config)
    return true
  }
  const requested = { ...config, ...toUnchanged(nats, present.config) }
  const info = await nats.manager.streams.update(name, { ...present.config, ...requested })
  requireEcho(`stream ${name}`, requested, info.config)
  return false
}

function toStart({ deliver_policy, opt_start_time }: ConsumerConfig): Partial<ConsumerConfig> {
  return { deliver_policy, ...(opt_start_time === undefined ? {} : { opt_start_time }) }
}

/** An operator may have set size and replicas on the stream: keep them unless configured here. */
function toUnchanged(nats: Nats, { name, max_bytes, num_replicas }: StreamConfig) {
  const configured = isTelemetryStream(nats, name) ? nats.telemetryBytesMax : undefined
  return { max_bytes: configured ?? max_bytes, num_replicas: nats.replicas ?? num_replicas }
}
