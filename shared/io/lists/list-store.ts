/**
 * Entries of allow and deny lists in Postgres, the source of truth. Every change of an entry raises
 * the version of its shard, or of its tenant's list of connections, in the same transaction, and a
 * console projects that to the edges.
 */
import {
  listEntriesMax,
  listEntriesOfAllMax,
  listedConnectionsMax,
} from '#shared/core/base/limits/lists.ts'
import type { IdKind, ListKind, ListName } from '#shared/core/lists/list-entry.ts'
import { toListHash } from '#shared/core/lists/lists.ts'
import type { ListShard } from '#shared/core/tenants/directory-entries.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { raiseConnectionVersions } from './connection-list-store.ts'

/** An entry as operators see it. Times are ISO-8601. */
export type ListEntryView = {
  entry_id: string
  list: ListName
  kind: ListKind
  id: string
  reason: string
  /** Null never expires. */
  expires_at: string | null
  /** Whether it has expired: then it has no effect any more. */
  expired: boolean
  created_at: string
  created_by: string
}

type EntryRow = Omit<ListEntryView, 'expires_at' | 'created_at'> & {
  expires_at: Date | null
  created_at: Date
}

const columns = `entry_id, list, kind, id, reason, expires_at, created_at, created_by,
  coalesce(expires_at <= clock_timestamp(), false) as expired`

const toView = (row: EntryRow): ListEntryView => ({
  ...row,
  expires_at: row.expires_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
})

export type NewListEntry = {
  tenantId: string
  entryId: string
  /** Of a device or a user; null for the connections, which have none. */
  shard: number | null
  list: ListName
  kind: ListKind
  id: string
  reason: string
  /** Null never expires; left out, an entry that it replaces keeps its expiry. */
  expiresAtMs?: number | null | undefined
  actor: string
}

/**
 * Adds an entry, or gives the present one of this id on this list a new reason, expiry and author.
 * Call it in a transaction: it lets no two calls of a tenant pass the limit together.
 * @returns the entry, and what it replaced; `full` when the tenant, or all tenants together, have
 *   as many as they may, and `connections_full` when the tenant has as many of connections
 */
export async function putListEntry(
  tx: Queryable,
  entry: NewListEntry,
): Promise<{ entry: ListEntryView; replaced: ListEntryView | null } | 'full' | 'connections_full'> {
  const { tenantId, list, kind, id } = entry
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`lists:${tenantId}`])
  const [replaced = null] = await findEntries(tx, { tenantId, list, kind, id })
  if (replaced === null) {
    const { rows } = await tx.query<{ own: number; connections: number; every: number }>(
      `select count(*) as own, count(*) filter (where shard is null) as connections,
         (select count(*) from (select 1 from list_entries limit ${listEntriesOfAllMax}) as counted)
           as every
       from list_entries where tenant_id = $1`,
      [tenantId],
    )
    const { own, connections, every } = rows[0]!
    if (own >= listEntriesMax || every >= listEntriesOfAllMax) return 'full'
    if (entry.shard === null && connections >= listedConnectionsMax) return 'connections_full'
  }
  const { rows } = await tx.query<EntryRow & { shard: number | null }>(
    `insert into list_entries as present
       (entry_id, tenant_id, list, kind, id, reason, expires_at, created_by, shard)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (tenant_id, kind, id, list) do update set reason = excluded.reason,
       expires_at = case when not $10 then excluded.expires_at
         when present.expires_at > clock_timestamp() then present.expires_at end,
       created_by = excluded.created_by,
       created_at = clock_timestamp()
     returning ${columns}, shard`,
    [
      entry.entryId,
      tenantId,
      list,
      kind,
      id,
      entry.reason,
      entry.expiresAtMs == null ? null : new Date(entry.expiresAtMs),
      entry.actor,
      entry.shard,
      entry.expiresAtMs === undefined,
    ],
  )
  const { shard, ...row } = rows[0]!
  await raiseVersions(tx, [{ tenant_id: tenantId, shard }])
  return { entry: toView(row), replaced }
}

/** Removes an entry. Call it in a transaction. @returns null when the tenant has no such entry */
export async function removeListEntry(
  tx: Queryable,
  { tenantId, entryId }: { tenantId: string; entryId: string },
): Promise<ListEntryView | null> {
  const { rows } = await tx.query<EntryRow & { shard: number | null }>(
    `delete from list_entries where tenant_id = $1 and entry_id = $2
     returning ${columns}, shard`,
    [tenantId, entryId],
  )
  if (rows[0] === undefined) return null
  const { shard, ...row } = rows[0]
  await raiseVersions(tx, [{ tenant_id: tenantId, shard }])
  return toView(row)
}

export type ListFilters = {
  tenantId: string
  list?: ListName | undefined
  kind?: ListKind | undefined
  id?: string | undefined
  reason?: string | undefined
  /** Whether they have expired. */
  expired?: boolean | undefined
}

function toCondition(filters: ListFilters, bind: (value: unknown) => string): string {
  const { tenantId, list, kind, id, reason, expired } = filters
  return [
    `tenant_id = ${bind(tenantId)}`,
    ...(list === undefined ? [] : [`list = ${bind(list)}`]),
    ...(kind === undefined ? [] : [`kind = ${bind(kind)}`]),
    ...(id === undefined ? [] : [`id = ${bind(id)}`]),
    ...(reason === undefined ? [] : [`reason = ${bind(reason)}`]),
    ...(expired === undefined
      ? []
      : [`coalesce(expires_at <= clock_timestamp(), false) = ${bind(expired)}`]),
  ].join(' and ')
}

async function findEntries(db: Queryable, filters: ListFilters): Promise<ListEntryView[]> {
  const values: unknown[] = []
  const condition = toCondition(filters, (value) => `$${values.push(value)}`)
  const { rows } = await db.query<EntryRow>(
    `select ${columns} from list_entries where ${condition}`,
    values,
  )
  return rows.map(toView)
}

/**
 * A page of entries, newest first.
 * @param page.after the last entry of the previous page
 * @returns `total` counts all that match the filters
 */
export async function listEntries(
  db: Queryable,
  filters: ListFilters,
  page: { limit: number; after: { createdAtMs: number; entryId: string } | null },
): Promise<{ data: ListEntryView[]; total: number }> {
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const condition = toCondition(filters, bind)
  const { after, limit } = page
  // Cursors have milliseconds.
  const created = "date_trunc('milliseconds', created_at)"
  const { rows } = await db.query<EntryRow & { total: number }>(
    `with matching as (select * from list_entries where ${condition})
     select ${columns}, (select count(*) from matching) as total from matching
     ${
       after === null
         ? ''
         : `where (${created}, entry_id) < (${bind(new Date(after.createdAtMs))}, ${bind(after.entryId)})`
     }
     order by ${created} desc, entry_id desc limit ${bind(limit)}`,
    values,
  )
  if (rows.length > 0) {
    return { data: rows.map(({ total: _, ...row }) => toView(row)), total: rows[0]!.total }
  }
  const counted = await countEntries(db, filters)
  return { data: [], total: counted }
}

async function countEntries(db: Queryable, filters: ListFilters): Promise<number> {
  const values: unknown[] = []
  const condition = toCondition(filters, (value) => `$${values.push(value)}`)
  const { rows } = await db.query<{ entries: number }>(
    `select count(*) as entries from list_entries where ${condition}`,
    values,
  )
  return rows[0]!.entries
}

type ShardKey = { tenant_id: string; shard: number }
/** Of a connection the shard is null. */
type VersionKey = { tenant_id: string; shard: number | null }

/** Raises versions, always in one order, so that no two transactions block. */
async function raiseVersions(tx: Queryable, changed: readonly VersionKey[]): Promise<void> {
  const shards = changed.filter(({ shard }) => shard !== null)
  const connections = changed.filter(({ shard }) => shard === null)
  if (shards.length > 0) await raiseShardVersions(tx, shards)
  if (connections.length === 0) return
  await raiseConnectionVersions(
    tx,
    connections.map((one) => one.tenant_id),
  )
}

async function raiseShardVersions(tx: Queryable, shards: readonly VersionKey[]): Promise<void> {
  await tx.query(
    `insert into list_shards as present (tenant_id, shard)
     select tenant_id, shard
     from (
       select distinct * from unnest($1::text[], $2::smallint[]) as t (tenant_id, shard)
     ) as changed
     order by tenant_id, shard
     on conflict (tenant_id, shard) do update set version = present.version + 1`,
    [shards.map((one) => one.tenant_id), shards.map((one) => one.shard)],
  )
}

/**
 * Removes expired entries. Call it in a transaction.
 * @returns how many; fewer than `most` means that none is left
 */
export async function removeExpiredListEntries(
  tx: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rows } = await tx.query<VersionKey>(
    `delete from list_entries where entry_id in (
       select entry_id from list_entries where expires_at <= $1
       order by expires_at limit $2 for update skip locked)
     returning tenant_id, shard`,
    [new Date(nowMs), most],
  )
  if (rows.length > 0) await raiseVersions(tx, rows)
  return rows.length
}

/** Removes the entries of an id from both lists. Call it in a transaction. */
export async function removeListEntriesOf(
  tx: Queryable,
  { tenantId, kind, id }: { tenantId: string; kind: IdKind; id: string },
): Promise<void> {
  const { rows } = await tx.query<ShardKey>(
    `delete from list_entries where tenant_id = $1 and kind = $2 and id = $3
     returning tenant_id, shard`,
    [tenantId, kind, id],
  )
  if (rows.length > 0) await raiseVersions(tx, rows)
}

/** Entries of an id on both lists. */
export const countListEntriesOf = (
  db: Queryable,
  entry: { tenantId: string; kind: IdKind; id: string },
): Promise<number> => countEntries(db, entry)

/** The version of every shard, by tenant and shard. */
export async function listShardVersions(
  db: Queryable,
): Promise<{ tenantId: string; shard: number; version: number }[]> {
  const { rows } = await db.query<ShardKey & { version: number }>(
    'select tenant_id, shard, version from list_shards order by tenant_id, shard',
  )
  return rows.map((row) => ({ tenantId: row.tenant_id, shard: row.shard, version: row.version }))
}

/** Shards with a version that is not projected yet. `first`: no version of it is. */
export async function listShardsToProject(
  db: Queryable,
  most: number,
): Promise<{ tenantId: string; shard: number; first: boolean }[]> {
  const { rows } = await db.query<ShardKey & { first: boolean }>({
    name: 'list-shards-to-project',
    text: `select tenant_id, shard, projected_version = 0 as first from list_shards
           where projected_version < version order by tenant_id, shard limit $1`,
    values: [most],
  })
  return rows.map(({ tenant_id: tenantId, ...shard }) => ({ tenantId, ...shard }))
}

/** Records that a version was projected. */
export async function recordProjected(
  db: Queryable,
  { tenantId, shard, version }: { tenantId: string; shard: number; version: number },
): Promise<void> {
  await db.query(
    `update list_shards set projected_version = least(version, greatest(projected_version, $3))
     where tenant_id = $1 and shard = $2`,
    [tenantId, shard, version],
  )
}

/** A tenant's shards of which a version was projected. */
export async function countProjectedShards(db: Queryable, tenantId: string): Promise<number> {
  const { rows } = await db.query<{ shards: number }>(
    `select count(*) as shards from list_shards where tenant_id = $1 and projected_version > 0`,
    [tenantId],
  )
  return rows[0]!.shards
}

/** Changes with every shard and list of connections; cheap to read. */
export async function readListMarker(db: Queryable): Promise<string> {
  const marker = `concat_ws(':', count(*), count(*) filter (where projected_version > 0),
    sum(version))`
  const { rows } = await db.query<{ marker: string }>(
    `select concat_ws(' ', (select ${marker} from list_shards),
       (select ${marker} from connection_lists)) as marker`,
  )
  return rows[0]!.marker
}

/** A shard as the edges get it; null when there is none. */
export async function findListShard(
  db: Queryable,
  { tenantId, shard }: { tenantId: string; shard: number },
): Promise<ListShard | null> {
  // One statement: the version and the entries are of one instant.
  const { rows } = await db.query<{ version: number; entries: ShardEntry[] }>(
    `select s.version, coalesce(json_agg(json_build_object('kind', e.kind, 'id', e.id,
         'list', e.list, 'entry_id', e.entry_id, 'reason', e.reason,
         'expires_at_ms', ceil(extract(epoch from e.expires_at) * 1000)::bigint)
         order by e.entry_id) filter (where e.entry_id is not null), '[]') as entries
     from list_shards s left join list_entries e using (tenant_id, shard)
     where s.tenant_id = $1 and s.shard = $2 group by s.version`,
    [tenantId, shard],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    tenant_id: tenantId,
    shard,
    version: row.version,
    entries: row.entries.map((one) => [
      toListHash(one.kind, one.id),
      one.list,
      one.kind,
      one.entry_id,
      one.reason,
      one.expires_at_ms,
    ]),
  }
}

type ShardEntry = {
  kind: IdKind
  id: string
  list: ListName
  entry_id: string
  reason: string
  expires_at_ms: number | null
}
