/** Lists the edges and what each has applied, as they announced it in the tenant directory. */
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import {
  edgeEntrySchema,
  edgeKey,
  policyKey,
  tenantKey,
} from '#shared/core/tenants/directory-entries.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isMessageGone } from '#shared/io/nats/jetstream-errors.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openDirectory, readAnnouncement } from './directory-entries.ts'

/** What an edge last announced. */
type EdgeView = {
  edge_id: string
  applied_revision: number
  announced_at: string
  /** The forms of directory entries that it reads; missing for an older release. */
  forms?: number[] | undefined
}

/** @param revision the newest that a tenant or policy has; 0 when there is none */
export type EdgeList = { revision: number; edges: EdgeView[] }

/** Reads the announcements once. @throws when NATS is away */
export async function listEdges(nats: Nats, sealer: Sealer): Promise<EdgeList> {
  const directory = await openDirectory(nats, sealer)
  const entries = await readEntries(nats, directory.bucket, edgeKey('*'))
  const newest = await Promise.all(
    [tenantKey('>'), policyKey('>')].map((key) => findNewest(nats, key)),
  )
  const edges: EdgeView[] = []
  for (const entry of entries.values()) {
    const parsed = edgeEntrySchema.safeParse(readAnnouncement(directory, entry)?.value)
    if (parsed.success) edges.push({ ...parsed.data, announced_at: entry.created.toISOString() })
  }
  return {
    revision: Math.max(...newest),
    edges: edges.sort((a, b) => (a.edge_id < b.edge_id ? -1 : 1)),
  }
}

async function findNewest(nats: Nats, key: string): Promise<number> {
  const subject = `$KV.${tenantsBucket}.${key}`
  try {
    const found = await nats.manager.streams.getMessage(`KV_${tenantsBucket}`, {
      last_by_subj: subject,
    })
    return found.seq
  } catch (error) {
    if (isMessageGone(error)) return 0
    throw error
  }
}
