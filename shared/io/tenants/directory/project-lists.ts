/** Projects shards of allow and deny lists from Postgres to the tenant directory. */
import { listProjectMax } from '#shared/core/base/limits/lists.ts'
import { isObject } from '#shared/core/telemetry/submission.ts'
import { listKey, tenantKey } from '#shared/core/tenants/directory-entries.ts'
import {
  countProjectedShards,
  findListShard,
  listShardsToProject,
  recordProjected,
} from '#shared/io/lists/list-store.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { type Directory, putProven, readProven } from './directory-entries.ts'

/**
 * Projects the shards that have a newer version than the edges.
 * @param openDirectory called when there are any
 * @returns how many
 * @throws when Postgres or NATS is away
 */
export async function projectChangedLists(
  openDirectory: () => Promise<Directory>,
  db: Queryable,
): Promise<number> {
  const shards = await listShardsToProject(db, listProjectMax)
  if (shards.length === 0) return 0
  const directory = await openDirectory()
  const projected = await Promise.allSettled(
    shards.map((shard) => projectShard(directory, db, shard)),
  )
  const grown = new Set(shards.filter(({ first }) => first).map(({ tenantId }) => tenantId))
  const counted = await Promise.allSettled(
    [...grown].map((tenantId) => projectShardCount(directory, db, tenantId)),
  )
  // One that fails delays no other.
  for (const result of [...projected, ...counted]) {
    if (result.status === 'rejected') throw result.reason
  }
  return shards.length
}

/**
 * Reads the directory's entry first and Postgres second, so a write on that entry never replaces a
 * newer version.
 */
async function projectShard(
  directory: Directory,
  db: Queryable,
  { tenantId, shard }: { tenantId: string; shard: number },
): Promise<void> {
  const key = listKey(tenantId, shard)
  for (;;) {
    const held = await directory.bucket.get(key)
    const wanted = await findListShard(db, { tenantId, shard })
    // The tenant was removed; the directory reconciler clears its entries.
    if (wanted === null) return
    const text = JSON.stringify(wanted)
    const present = held === null ? null : readProven(directory, held)
    try {
      if (present?.text !== text) await putProven(directory, key, text, held?.revision ?? 0)
      await recordProjected(db, { tenantId, shard, version: wanted.version })
      return
    } catch (error) {
      if (!isWrongRevision(error)) throw error
    }
  }
}

/**
 * Writes into a tenant's entry how many shards the directory has of its lists, and changes nothing
 * else of it. The directory reconciler mends an entry that is missing or has no proof.
 */
async function projectShardCount(
  directory: Directory,
  db: Queryable,
  tenantId: string,
): Promise<void> {
  const key = tenantKey(tenantId)
  for (;;) {
    const held = await directory.bucket.get(key)
    const present = held === null ? null : readProven(directory, held)
    if (held === null || !isObject(present?.value)) return
    const shards = await countProjectedShards(db, tenantId)
    const text = JSON.stringify({ ...present.value, list_shards: shards })
    if (shards === 0 || present.text === text) return
    try {
      await putProven(directory, key, text, held.revision)
      return
    } catch (error) {
      if (!isWrongRevision(error)) throw error
    }
  }
}
