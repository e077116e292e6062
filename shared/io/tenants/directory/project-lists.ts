/** Projects allow and deny lists from Postgres to the tenant directory. */
import { listProjectMax } from '#shared/core/base/limits/lists.ts'
import { isObject } from '#shared/core/telemetry/submission.ts'
import { connectionListKey, listKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import {
  findConnectionList,
  hasProjectedConnections,
  listConnectionsToProject,
  recordConnectionsProjected,
} from '#shared/io/lists/connection-list-store.ts'
import {
  countProjectedShards,
  findListShard,
  listShardsToProject,
  recordProjected,
} from '#shared/io/lists/list-store.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type Directory, putProven, readProven } from './directory-entries.ts'

/** A shard, or a list of connections, with a version that the edges do not have yet. */
type Projected = {
  tenantId: string
  /** Whether no version of it was projected before. */
  first: boolean
  key: string
  /** What Postgres has now; null once the tenant was removed. */
  read: () => Promise<{ version: number } | null>
  record: (version: number) => Promise<void>
}

/**
 * Projects the shards and lists of connections that have a newer version than the edges.
 * @param openDirectory called when there are any
 * @returns how many
 * @throws when Postgres or NATS is away
 */
export async function projectChangedLists(
  openDirectory: () => Promise<Directory>,
  db: Queryable,
): Promise<number> {
  const changed = await listChanged(db)
  if (changed.length === 0) return 0
  const directory = await openDirectory()
  const projected = await Promise.allSettled(changed.map((one) => project(directory, one)))
  const grown = new Set(changed.filter(({ first }) => first).map(({ tenantId }) => tenantId))
  const counted = await Promise.allSettled(
    [...grown].map((tenantId) => projectCounts(directory, db, tenantId)),
  )
  // One that fails delays no other.
  for (const result of [...projected, ...counted]) {
    if (result.status === 'rejected') throw result.reason
  }
  return changed.length
}

async function listChanged(db: Queryable): Promise<Projected[]> {
  const shards = await listShardsToProject(db, listProjectMax)
  const connections = await listConnectionsToProject(db, listProjectMax)
  return [
    ...shards.map(({ tenantId, shard, first }) => ({
      tenantId,
      first,
      key: listKey(tenantId, shard),
      read: () => findListShard(db, { tenantId, shard }),
      record: (version: number) => recordProjected(db, { tenantId, shard, version }),
    })),
    ...connections.map(({ tenantId, first }) => ({
      tenantId,
      first,
      key: connectionListKey(tenantId),
      read: () => findConnectionList(db, tenantId),
      record: (version: number) => recordConnectionsProjected(db, { tenantId, version }),
    })),
  ]
}

/**
 * Reads the directory's entry first and Postgres second, so a write on that entry never replaces a
 * newer version.
 */
async function project(directory: Directory, { key, read, record }: Projected): Promise<void> {
  for (;;) {
    const held = await directory.bucket.get(key)
    const wanted = await read()
    // The tenant was removed; the directory reconciler clears its entries.
    if (wanted === null) return
    const text = JSON.stringify(wanted)
    const present = held === null ? null : readProven(directory, held)
    try {
      if (present?.text !== text) await putProven(directory, key, text, held?.revision ?? 0)
      await record(wanted.version)
      return
    } catch (error) {
      if (!isWrongRevision(error)) throw error
    }
  }
}

/**
 * Writes into a tenant's entry what the directory has of its lists, and changes nothing else of it.
 * The directory reconciler mends an entry that is missing or has no proof.
 */
async function projectCounts(directory: Directory, db: Queryable, tenantId: string): Promise<void> {
  const key = tenantKey(tenantId)
  for (;;) {
    const held = await directory.bucket.get(key)
    const present = held === null ? null : readProven(directory, held)
    if (held === null || !isObject(present?.value)) return
    const shards = await countProjectedShards(db, tenantId)
    const hasConnections = await hasProjectedConnections(db, tenantId)
    const text = JSON.stringify({
      ...present.value,
      ...(shards === 0 ? {} : { list_shards: shards }),
      ...(hasConnections ? { connection_list: true } : {}),
    })
    if (present.text === text) return
    try {
      await putProven(directory, key, text, held.revision)
      return
    } catch (error) {
      if (!isWrongRevision(error)) throw error
    }
  }
}
