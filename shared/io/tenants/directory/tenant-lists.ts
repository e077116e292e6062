/**
 * The allow and deny lists of one edge's copy of the tenant directory: shards of devices and users,
 * and one entry of networks, operators and countries. One that no console wrote, that cannot be
 * read, or that is missing makes the lists of its tenant unusable: an earlier one may no longer
 * hold.
 */
import {
  buildConnectionLists,
  type ConnectionLists,
  findConnectionEntries,
} from '#shared/core/lists/connection-lists.ts'
import type { IdKind, ListEntry, ListName } from '#shared/core/lists/list-entry.ts'
import { type ListSource, toListHash } from '#shared/core/lists/lists.ts'
import {
  connectionListSchema,
  listShardSchema,
  type TenantEntry,
} from '#shared/core/tenants/directory-entries.ts'

/** The lists of one tenant. They change in place. */
export type TenantLists = ListSource & {
  /** Whether all of them are there and readable; otherwise decide nothing. */
  usable: () => boolean
}

export type DirectoryLists = {
  /** @param entry of the tenant, which says what the directory has of its lists */
  of: (tenantId: string, entry: Pick<TenantEntry, 'list_shards' | 'connection_list'>) => TenantLists
  /**
   * Replaces a shard, or with null the list of connections; the value undefined removes it.
   * @returns false when it cannot be read
   */
  set: (tenantId: string, shard: string | null, value: unknown) => boolean
  /** Marks it as one that no console wrote. */
  setUnproven: (tenantId: string, shard: string | null) => void
  /** Entries of all tenants, expired ones included. */
  count: () => number
}

type Shards = Map<string, ReadonlyMap<string, ListEntry[]> | 'unusable'>
type Held = {
  shards: Shards
  /** Null while there are none. */
  connections: ConnectionLists | 'unusable' | null
  connectionEntries: number
}

const none: readonly ListEntry[] = []

export function createDirectoryLists(): DirectoryLists {
  const tenants = new Map<string, Held>()
  const findHeld = (tenantId: string): Held => {
    const present = tenants.get(tenantId)
    if (present !== undefined) return present
    const held: Held = { shards: new Map(), connections: null, connectionEntries: 0 }
    tenants.set(tenantId, held)
    return held
  }
  return {
    of: (tenantId, entry) => toLists(findHeld(tenantId), entry),
    set: (tenantId, shard, value) => {
      const held = findHeld(tenantId)
      const { shards } = held
      if (shard === null) return setConnections(held, tenantId, value)
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
      const held = findHeld(tenantId)
      if (shard === null) Object.assign(held, unusableConnections)
      else held.shards.set(shard, 'unusable')
    },
    count: () => {
      let entries = 0
      for (const { shards, connectionEntries } of tenants.values()) {
        entries += connectionEntries
        for (const shard of shards.values()) {
          if (shard !== 'unusable') for (const some of shard.values()) entries += some.length
        }
      }
      return entries
    },
  }
}

const unusableConnections = { connections: 'unusable', connectionEntries: 0 } as const

function setConnections(held: Held, tenantId: string, value: unknown): boolean {
  if (value === undefined) {
    Object.assign(held, { connections: null, connectionEntries: 0 })
    return true
  }
  const { data } = connectionListSchema.safeParse(value)
  const connections =
    data?.tenant_id === tenantId
      ? buildConnectionLists(
          data.entries.map(([id, list, kind, entryId, reason, expiresAtMs]) => {
            return { id, list, kind, entryId, reason, expiresAtMs }
          }),
        )
      : null
  if (data === undefined || connections === null) {
    Object.assign(held, unusableConnections)
    return false
  }
  Object.assign(held, { connections, connectionEntries: data.entries.length })
  return true
}

function toLists(
  held: Held,
  entry: Pick<TenantEntry, 'list_shards' | 'connection_list'>,
): TenantLists {
  const { shards } = held
  const { list_shards: shardsMin = 0, connection_list: needsConnections = false } = entry
  return {
    usable: () => {
      if (shards.size < shardsMin || held.connections === 'unusable') return false
      if (needsConnections && held.connections === null) return false
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
    findOfConnection: (connection) => {
      const { connections } = held
      if (connections === null || connections === 'unusable') return none
      return findConnectionEntries(connections, connection)
    },
  }
}

function toEntries(
  rows: readonly (readonly [string, ListName, IdKind, string, string, number | null])[],
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
