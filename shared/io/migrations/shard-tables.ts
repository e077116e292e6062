/** What a shard of ClickHouse has beside its own tables: the same tables with the rows of all. */
import { clusterName, toDistributedTable } from '#shared/core/base/shards.ts'
import { type ClickhouseNode, quoteName } from '#shared/io/clickhouse/clickhouse.ts'

/** The place of a server. */
export type Place = {
  /** From 1. */
  shard: number
  shards: number
  /** Of this shard. */
  replicas: number
  /** Host and port. */
  replica: string
}

/** @returns what to correct when the server has other shards in its configuration, or another order */
export async function findMisplaced(
  client: ClickhouseNode,
  { shard, shards, replicas, replica }: Place,
): Promise<string | null> {
  const result = await client.query({
    query: `select max(shard_num), groupUniqArrayIf(shard_num, is_local),
              min(internal_replication) from system.clusters
            where cluster = {cluster:String}`,
    query_params: { cluster: clusterName },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[count: number, own: number[], internal: number]>()
  const [count, own, internal] = row!
  if (count !== shards || own.length !== 1 || own[0] !== shard) {
    return (
      `Shard ${shard} of CLICKHOUSE_CLUSTER is ${own.join(' and ') || 'none'} of the ${count} ` +
      `shards in the cluster ${clusterName} of its remote_servers. Both must list the same ` +
      `${shards} shards in the same order.`
    )
  }
  if (replicas === 1 || internal === 1) return null
  return (
    `The cluster ${clusterName} in the remote_servers of ${replica} needs ` +
    '<internal_replication>true</internal_replication> for every shard: replicas copy the rows ' +
    'themselves.'
  )
}

/** Rows never move, so the database of all shards keeps their number in its comment. */
const toComment = (shards: number): string => `shards: ${shards}`
const toText = (shards: number): string =>
  shards === 0 ? 'one node' : `${shards} shard${shards === 1 ? '' : 's'}`

/** Over what CLICKHOUSE_CLUSTER spreads the rows. */
export type Spread = {
  /** 0 of one node. */
  shards: number
  hasReplicas: boolean
}

/**
 * @returns null, or what is wrong, as the end of a sentence: a server was migrated for another
 *   number of shards, or for none that has replicas
 */
export async function findOtherSpread(
  client: ClickhouseNode,
  { database, all }: { database: string; all: string },
  { shards, hasReplicas }: Spread,
): Promise<string | null> {
  const result = await client.query({
    query: `select groupArray(comment), (select count() from system.tables
              where database = {database:String} and name = 'schema_migrations')
            from system.databases where name = {all:String}`,
    query_params: { database, all },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[comments: string[], schemas: number | string]>()
  const [[comment], schemas] = row!
  const isOfOne = comment === undefined && Number(schemas) > 0
  // An operator may have made the databases, without a comment.
  const before = isOfOne ? 0 : Number(comment?.match(/^shards: (\d+)$/)?.[1] ?? shards)
  if (before !== shards) {
    return (
      `was migrated as ${toText(before)}, and CLICKHOUSE_CLUSTER makes it ${toText(shards)}. ` +
      'Rows never move: name the same servers as before, or begin with empty ones'
    )
  }
  if (!hasReplicas || (await copiesRows(client, { database, hasReplicas }))) return null
  return (
    'was migrated without replicas, and its tables copy no rows. Name one server per shard in ' +
    'CLICKHOUSE_CLUSTER, or begin with empty ones'
  )
}

/**
 * Whether replicas of a server copy its rows: what its tables do already, also when its last
 * replica is not named any more; of an empty server, whether it has replicas.
 */
export async function copiesRows(
  client: ClickhouseNode,
  { database, hasReplicas }: { database: string; hasReplicas: boolean },
): Promise<boolean> {
  const result = await client.query({
    query: `select count(), countIf(engine like 'Replicated%') from system.tables
            where database = {database:String} and engine like '%MergeTree'
              and name not in ('schema_migrations', 'schema_views')`,
    query_params: { database },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[tables: number | string, replicated: number | string]>()
  const [tables, replicated] = row!.map(Number)
  return tables === 0 ? hasReplicas : replicated! > 0
}

/**
 * Creates the databases of a node where they are missing.
 * @param place null of the only node
 */
export async function createDatabases(
  client: ClickhouseNode,
  { database, all }: { database: string; all: string },
  place: Place | null,
): Promise<void> {
  const create = (name: string) => `create database if not exists ${quoteName(name)}`
  // First: a schema without it is that of one node.
  if (place !== null) {
    await client.command({ query: `${create(all)} comment '${toComment(place.shards)}'` })
  }
  await client.command({ query: create(database) })
}

/** After a statement about a table of a shard, the table of all shards is as that one. */
export async function followTable(
  client: ClickhouseNode,
  statement: string,
  names: { database: string; all: string },
): Promise<void> {
  const changed = /^(?:create table if not exists|alter table) (\w+)/m.exec(statement)?.[1]
  if (changed === undefined) return
  const result = await client.query({
    query: `select count() from system.tables where database = currentDatabase()
            and name = {table:String} and engine like '%MergeTree'`,
    query_params: { table: changed },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[number | string]>()
  // A view has rows of a shard only, which its source has in all.
  if (Number(row![0]) === 0) return
  await client.command({ query: toDistributedTable({ ...names, table: changed }) })
}
