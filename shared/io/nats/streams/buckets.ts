/** The KV buckets of the service. Each keeps one entry per key. */
import { DiscardPolicy, type KV, nanos, type StreamConfig } from 'nats'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { erasuresKeptDays } from '#shared/core/base/limits/tenants.ts'
import {
  acceptedBucket,
  directoryChanges,
  removalsBucket,
  staleSecretBucket,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '../connection.ts'

const reportsBytesMax = 256 * 1024 ** 2
const twoMinutesMs = 120_000

/**
 * The settings of the streams behind the buckets. No entry is removed by another one's header
 * (`Nats-Rollup`), and messages are never deleted one by one.
 */
export function listBucketConfigs(): Partial<StreamConfig>[] {
  return [
    // One entry per tenant, one per policy document, and one announcement per edge. Markers of
    // policies are purged.
    {
      ...toBucketConfig(tenantsBucket, { valueBytesMax: 512 * 1024 }),
      deny_purge: false,
      republish: {
        src: `$KV.${tenantsBucket}.>`,
        dest: `${directoryChanges}.>`,
        headers_only: true,
      },
    },
    // The edges' reports of stale-secret requests.
    toBucketConfig(staleSecretBucket, {
      keptMs: 30 * dayMs,
      valueBytesMax: 32 * 1024,
      bytesMax: reportsBytesMax,
    }),
    // The edges' counts of accepted events, for a day longer than an event can wait for a scorer.
    toBucketConfig(acceptedBucket, {
      keptMs: 96 * hourMs,
      valueBytesMax: 256 * 1024,
      bytesMax: reportsBytesMax,
    }),
    // What must stay gone, for as long as Postgres keeps erasures: some 300 bytes for each erased
    // subject and retired key.
    toBucketConfig(removalsBucket, {
      keptMs: erasuresKeptDays * dayMs,
      valueBytesMax: 4 * 1024,
    }),
  ]
}

function toBucketConfig(
  bucket: string,
  { valueBytesMax, keptMs = 0, bytesMax = -1 }: BucketLimits,
): Partial<StreamConfig> {
  return {
    name: `KV_${bucket}`,
    subjects: [`$KV.${bucket}.>`],
    max_msgs_per_subject: 1,
    max_msg_size: valueBytesMax,
    max_bytes: bytesMax,
    max_age: nanos(keptMs),
    discard: DiscardPolicy.New,
    duplicate_window: nanos(twoMinutesMs),
    allow_direct: true,
    allow_rollup_hdrs: false,
    deny_delete: true,
    deny_purge: true,
  }
}

type BucketLimits = { valueBytesMax: number; keptMs?: number; bytesMax?: number }

/** Opens the tenant directory's projection. @throws when it does not exist, or NATS is away */
export const openTenantsBucket = (nats: Nats): Promise<KV> => open(nats, tenantsBucket)

/** Opens the reports of stale-secret requests. @throws like `openTenantsBucket` */
export const openStaleSecretBucket = (nats: Nats): Promise<KV> => open(nats, staleSecretBucket)

/** Opens the counts of accepted events. @throws like `openTenantsBucket` */
export const openAcceptedBucket = (nats: Nats): Promise<KV> => open(nats, acceptedBucket)

/** Opens the list of what must stay gone. @throws like `openTenantsBucket` */
export const openRemovalsBucket = (nats: Nats): Promise<KV> => open(nats, removalsBucket)

function open({ jetstream }: Nats, bucket: string): Promise<KV> {
  return jetstream.views.kv(bucket, { bindOnly: true, allow_direct: true })
}
