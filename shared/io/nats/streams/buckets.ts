/** The KV buckets of the service. Opening one creates it when it is missing. */
import { type KV, StorageType } from 'nats'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { erasuresKeptDays } from '#shared/core/base/limits/tenants.ts'
import {
  acceptedBucket,
  removalsBucket,
  staleSecretBucket,
  tenantsBucket,
} from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '../connection.ts'

/** Opening a bucket leaves its replicas as they are; `ensureStreams` changes them. */
export const bucketNames = [tenantsBucket, staleSecretBucket, acceptedBucket, removalsBucket]

/**
 * The tenant directory's projection: one entry per tenant, one per policy document, and one
 * announcement per edge. @throws when NATS is away
 */
export function openTenantsBucket(nats: Nats): Promise<KV> {
  return open(nats, tenantsBucket, { maxValueSize: 512 * 1024 })
}

/** The edges' reports of stale-secret requests, for 30 days. @throws when NATS is away */
export function openStaleSecretBucket(nats: Nats): Promise<KV> {
  return open(nats, staleSecretBucket, {
    ttl: 30 * dayMs,
    maxValueSize: 32 * 1024,
    max_bytes: reportsBytesMax,
  })
}

/**
 * The edges' counts of accepted events, for a day longer than an event can wait for a scorer.
 * @throws when NATS is away
 */
export function openAcceptedBucket(nats: Nats): Promise<KV> {
  return open(nats, acceptedBucket, {
    ttl: 96 * hourMs,
    maxValueSize: 256 * 1024,
    max_bytes: reportsBytesMax,
  })
}

/**
 * What must stay gone, for as long as Postgres keeps erasures: some 300 bytes for each erased
 * subject and retired key. @throws when NATS is away
 */
export function openRemovalsBucket(nats: Nats): Promise<KV> {
  return open(nats, removalsBucket, { ttl: erasuresKeptDays * dayMs, maxValueSize: 4 * 1024 })
}

const reportsBytesMax = 256 * 1024 ** 2

function open(
  nats: Nats,
  bucket: string,
  limits: { maxValueSize: number; ttl?: number; max_bytes?: number },
): Promise<KV> {
  return nats.jetstream.views.kv(bucket, {
    history: 1,
    storage: StorageType.File,
    replicas: nats.replicas ?? 1,
    ...limits,
  })
}
