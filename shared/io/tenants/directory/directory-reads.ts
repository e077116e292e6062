/** Reads the tenant directory's bucket on and on, woken by the server's notices of changes. */
import type { KV } from 'nats'
import { leaseMs } from '#shared/core/base/limits/tenants.ts'
import { directoryChanges, tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { edgeKey } from '#shared/core/tenants/directory-entries.ts'
import { type BucketRead, createBucketReader } from '#shared/io/nats/bucket-reader.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { markKey } from './tenant-directory.ts'

export type DirectoryReads = {
  bucket: KV
  /** When its stream was made: another creation is another stream. */
  createdAt: string
  /** From the first entry on. It ends when it is stopped, or the bucket was replaced meanwhile. */
  all: () => AsyncGenerator<BucketRead>
  /** There is an entry at this revision, or was: reads on. */
  wake: (revision: number) => void
  stop: () => void
}

/**
 * Opens the bucket.
 * @param onFailure called when a read failed; it is repeated
 * @throws when there is no bucket, or NATS does not answer
 */
export async function openDirectoryReads(
  nats: Nats,
  onFailure: (error: unknown) => void,
): Promise<DirectoryReads> {
  // A reply after more than half a lease is too late to renew it.
  const jetstream = nats.connection.jetstream({ timeout: leaseMs / 2 })
  const opening = openTenantsBucket({ ...nats, jetstream })
  const [bucket, createdAt] = await Promise.all([opening, readCreation(nats)])
  const reader = createBucketReader({ nats, bucket: tenantsBucket, onFailure })
  const notices = nats.connection.subscribe(`${directoryChanges}.>`, {
    callback: (error, { subject, headers }) => {
      if (error !== null) return
      // What other edges announce is read with this edge's next announcement.
      const key = subject.slice(directoryChanges.length + 1)
      if (key !== markKey && key.startsWith(edgeKey(''))) return
      reader.wake(Number(headers?.get('Nats-Sequence') ?? 0))
    },
  })
  async function* all(): AsyncGenerator<BucketRead> {
    let isFirst = true
    for await (const read of reader.reads()) {
      // It may have been replaced before its first entry was read.
      if (isFirst && read.isToEnd && (await readCreation(nats)) !== createdAt) return
      isFirst &&= !read.isToEnd
      yield read
    }
  }
  return {
    bucket,
    createdAt,
    all,
    wake: reader.wake,
    stop: () => {
      reader.stop()
      notices.unsubscribe()
    },
  }
}

async function readCreation(nats: Nats): Promise<string> {
  return String((await nats.manager.streams.info(`KV_${tenantsBucket}`)).created)
}
