/**
 * Creates streams, buckets and consumers that are missing, as on a broker that lost its store. What
 * exists stays unchanged: only `ensureStreams`, which runs with a migration, changes a stream. Only
 * `migrate` and the console may create: other processes wait.
 */
import type { KV, StreamConfig } from 'nats'
import { telemetryStreamBytesMin } from '#shared/core/base/limits/stream.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  type TelemetryStream,
  telemetryStreams,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from '../connection.ts'
import { isNotFound, isOutOfStorage } from '../jetstream-errors.ts'
import { openTenantsBucket } from './buckets.ts'
import { consumerConfigs, listStreamConfigs } from './stream-configs.ts'

/**
 * Creates every stream, bucket and consumer that is missing.
 * @returns the names of what it created, such as `stream TELEMETRY`
 * @throws when the broker does not answer
 */
export async function restoreStreams(nats: Nats): Promise<string[]> {
  const created: string[] = []
  const names = listStreamConfigs(nats).map(({ name }) => name!)
  for (const stream of names) {
    if (await restoreStream(nats, stream)) created.push(`stream ${stream}`)
  }
  for (const [durable, { stream, config }] of Object.entries(consumerConfigs)) {
    if (!names.includes(stream)) continue
    const found = await nats.manager.consumers.info(stream, durable).catch(nullIfMissing)
    if (found !== null) continue
    await nats.manager.consumers.add(stream, config)
    created.push(`consumer ${durable}`)
  }
  return created
}

/**
 * Creates a stream when it is missing.
 * @returns whether it was
 * @throws when the broker does not answer
 */
async function restoreStream(nats: Nats, stream: string): Promise<boolean> {
  if ((await nats.manager.streams.info(stream).catch(nullIfMissing)) !== null) return false
  await addStream(nats, listStreamConfigs(nats).find(({ name }) => name === stream)!)
  return true
}

/** Opens the tenant directory's bucket, which is made when it is missing. @throws likewise */
export async function restoreTenantsBucket(nats: Nats): Promise<KV> {
  await restoreStream(nats, `KV_${tenantsBucket}`)
  return openTenantsBucket(nats)
}

/**
 * Creates a stream. The server reserves the full size at once. Where no size is configured and the
 * server has less storage, the size of a telemetry stream is halved until the server accepts it.
 * @throws Error when a size is configured, or the server has less than the minimum, or ignores a
 *   setting
 */
export async function addStream(nats: Nats, config: Partial<StreamConfig>): Promise<void> {
  try {
    const info = await nats.manager.streams.add(config)
    requireEcho(`stream ${config.name}`, config, info.config)
  } catch (error) {
    const half = Math.floor((config.max_bytes ?? 0) / 2)
    const mayShrink = isTelemetryStream(nats, config.name) && nats.telemetryBytesMax === undefined
    if (!mayShrink || half < telemetryStreamBytesMin || !isOutOfStorage(error)) throw error
    await addStream(nats, { ...config, max_bytes: half })
  }
}

/** Whether a stream is one of this process's telemetry streams. */
export function isTelemetryStream(nats: Nats, name: string | undefined): boolean {
  return nats.telemetryStreams.some(({ stream }) => stream === name)
}

/** @returns the telemetry streams that the server has @throws when the broker does not answer */
export async function listPresentStreams(nats: Nats): Promise<TelemetryStream[]> {
  const present: TelemetryStream[] = []
  for (const one of telemetryStreams) {
    const info = await nats.manager.streams.info(one.stream).catch(nullIfMissing)
    if (info !== null) present.push(one)
  }
  return present
}

/** Turns "not found" into null. @throws every other error */
export function nullIfMissing(error: unknown): null {
  if (isNotFound(error)) return null
  throw error
}

/** @throws Error naming a requested setting that the server did not apply */
export function requireEcho(what: string, requested: object, applied: object): void {
  for (const [name, value] of Object.entries(requested)) {
    const got = (applied as Record<string, unknown>)[name]
    if (JSON.stringify(got) === JSON.stringify(value)) continue
    throw new Error(
      `${what}: the server did not apply ${name}: requested ${JSON.stringify(value)}, got ` +
        `${JSON.stringify(got)}`,
    )
  }
}
