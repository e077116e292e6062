/**
 * The allow and deny lists of one edge's copy of the tenant directory, shard by shard. A shard that
 * no console wrote, that cannot be read, or that is missing makes the lists of its tenant unusable:
 * the entries of an earlier shard may no longer hold.
 */
import { type FindListEntries, type ListEntry, toListHash } from '#shared/core/lists/lists.ts'
import { listShardSchema } from '#shared/core/tenants/directory-entries.ts'

/** The lists of one tenant. They change in place. */
export type TenantLists = {
  /** Whether every shard is there and readable; otherwise decide nothing. */
  usable: () => boolean
  find: FindListEntries
}

export type DirectoryLists = {
  /** @param shardsMin how many the tenant has by its own entry */
  of: (tenantId: string, shardsMin: number) => TenantLists
  /**
   * Replaces a shard; undefined removes it.
   * @returns false when it cannot be read
   */
  set: (tenantId: string, shard: string, value: unknown) => boolean
  /** Marks a shard as one that no console wrote. */
  setUnproven: (tenantId: string, shard: string) => void
  /** Entries of all tenants, expired ones included. */
  count: () => number
}

type Shards = Map<string, ReadonlyMap<string, ListEntry[]> | 'unusable'>

const none: readonly ListEntry[] = []

export function createDirectoryLists(): DirectoryLists {
  const shardsOf = new Map<string, Shards>()
  const findShards = (tenantId: string): Shards => {
    const present = shardsOf.get(tenantId)
    if (present !== undefined) return present
    const shards: Shards = new Map()
    shardsOf.set(tenantId, shards)
    return shards
  }
  return {
    of: (tenantId, shardsMin) => toLists(findShards(tenantId), shardsMin),
    set: (tenantId, shard, value) => {
      const shards = findShards(tenantId)
      if (value === undefined) {
        shards.delete(shard)
        return true
      }
      const parsed = listShardSchema.safeParse(value)
      const isOwn = parsed.success && parsed.data.tenant_id === tenantId
      if (!isOwn || String(parsed.data.shard) !== shard) {
        shards.set(shard, 'unusable')
        return false
      }
      shards.set(shard, toEntries(parsed.data.entries))
      return true
    },
    setUnproven: (tenantId, shard) => {
      findShards(tenantId).set(shard, 'unusable')
    },
    count: () => {
      let entries = 0
      for (const shards of shardsOf.values()) {
        for (const shard of shards.values()) {
          if (shard !== 'unusable') for (const some of shard.values()) entries += some.length
        }
      }
      return entries
    },
  }
}

function toLists(shards: Shards, shardsMin: number): TenantLists {
  return {
    usable: () => {
      if (shards.size < shardsMin) return false
      for (const shard of shards.values()) if (shard === 'unusable') return false
      return true
    },
    find: (kind, id) => {
      // Nearly every tenant has no lists: its ids are not hashed.
      if (shards.size === 0) return none
      const idHash = toListHash(kind, id)
      let found = none
      for (const shard of shards.values()) {
        const some = shard === 'unusable' ? undefined : shard.get(idHash)
        if (some !== undefined) found = found === none ? some : [...found, ...some]
      }
      return found
    },
  }
}

function toEntries(
  rows: readonly (readonly [
    string,
    ListEntry['list'],
    ListEntry['kind'],
    string,
    string,
    number | null,
  ])[],
): ReadonlyMap<string, ListEntry[]> {
  const entries = new Map<string, ListEntry[]>()
  for (const [idHash, list, kind, entryId, reason, expiresAtMs] of rows) {
    const entry = { entryId, list, kind, reason, expiresAtMs }
    const present = entries.get(idHash)
    if (present === undefined) entries.set(idHash, [entry])
    else present.push(entry)
  }
  return entries
}
