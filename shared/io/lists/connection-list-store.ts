/**
 * The versions of the lists of networks, operators and countries in Postgres, one a tenant, and the
 * lists as the edges get them.
 */
import type { ConnectionKind, ListName } from '#shared/core/lists/list-entry.ts'
import type { ConnectionList } from '#shared/core/tenants/directory-entries.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** Raises the versions of tenants, always in one order, so that no two transactions block. */
export async function raiseConnectionVersions(
  tx: Queryable,
  tenantIds: readonly string[],
): Promise<void> {
  await tx.query(
    `insert into connection_lists as present (tenant_id)
     select distinct tenant_id from unnest($1::text[]) as changed (tenant_id) order by tenant_id
     on conflict (tenant_id) do update set version = present.version + 1`,
    [tenantIds],
  )
}

/** The version of every list, by tenant. */
export async function listConnectionVersions(
  db: Queryable,
): Promise<{ tenantId: string; version: number }[]> {
  const { rows } = await db.query<{ tenant_id: string; version: number }>(
    'select tenant_id, version from connection_lists order by tenant_id',
  )
  return rows.map(({ tenant_id: tenantId, version }) => ({ tenantId, version }))
}

/** Lists with a version that is not projected yet. `first`: no version of it is. */
export async function listConnectionsToProject(
  db: Queryable,
  most: number,
): Promise<{ tenantId: string; first: boolean }[]> {
  const { rows } = await db.query<{ tenant_id: string; first: boolean }>({
    name: 'connection-lists-to-project',
    text: `select tenant_id, projected_version = 0 as first from connection_lists
           where projected_version < version order by tenant_id limit $1`,
    values: [most],
  })
  return rows.map(({ tenant_id: tenantId, first }) => ({ tenantId, first }))
}

/** Records that a version was projected. */
export async function recordConnectionsProjected(
  db: Queryable,
  { tenantId, version }: { tenantId: string; version: number },
): Promise<void> {
  await db.query(
    `update connection_lists
     set projected_version = least(version, greatest(projected_version, $2)) where tenant_id = $1`,
    [tenantId, version],
  )
}

/** Whether a version of a tenant's list was projected. */
export async function hasProjectedConnections(db: Queryable, tenantId: string): Promise<boolean> {
  const { rows } = await db.query(
    'select from connection_lists where tenant_id = $1 and projected_version > 0',
    [tenantId],
  )
  return rows.length > 0
}

/** A list as the edges get it; null when there is none. */
export async function findConnectionList(
  db: Queryable,
  tenantId: string,
): Promise<ConnectionList | null> {
  // One statement: the version and the entries are of one instant.
  const { rows } = await db.query<{ version: number; entries: ListedEntry[] }>(
    `select c.version, coalesce(json_agg(json_build_object('id', e.id, 'list', e.list,
         'kind', e.kind, 'entry_id', e.entry_id, 'reason', e.reason,
         'expires_at_ms', ceil(extract(epoch from e.expires_at) * 1000)::bigint)
         order by e.entry_id) filter (where e.entry_id is not null), '[]') as entries
     from connection_lists c
     left join list_entries e on e.tenant_id = c.tenant_id and e.shard is null
     where c.tenant_id = $1 group by c.version`,
    [tenantId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    tenant_id: tenantId,
    version: row.version,
    entries: row.entries.map((one) => [
      one.id,
      one.list,
      one.kind,
      one.entry_id,
      one.reason,
      one.expires_at_ms,
    ]),
  }
}

type ListedEntry = {
  id: string
  list: ListName
  kind: ConnectionKind
  entry_id: string
  reason: string
  expires_at_ms: number | null
}
