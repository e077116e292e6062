/** What a shard of ClickHouse has beside its own tables: the same tables with the rows of all. */
import { clusterName, toDistributedTable } from '#shared/core/base/shards.ts'
import { type ClickhouseNode, quoteName } from '#shared/io/clickhouse/clickhouse.ts'

/** The number of a shard, from 1, and of how many. */
export type Place = { shard: number; shards: number }

/** @returns what to correct when the server has other shards in its configuration, or another order */
export async function findMisplaced(
  client: ClickhouseNode,
  { shard, shards }: Place,
): Promise<string | null> {
  const result = await client.query({
    query: `select max(shard_num), groupUniqArrayIf(shard_num, is_local) from system.clusters
            where cluster = {cluster:String}`,
    query_params: { cluster: clusterName },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[count: number, own: number[]]>()
  const [count, own] = row!
  if (count === shards && own.length === 1 && own[0] === shard) return null
  return (
    `Shard ${shard} of CLICKHOUSE_CLUSTER is ${own.join(' and ') || 'none'} of the ${count} shards ` +
    `in the cluster ${clusterName} of its remote_servers. Both must list the same ${shards} ` +
    'servers in the same order.'
  )
}

/** Rows never move, so the database of all shards keeps their number in its comment. */
const toComment = (shards: number): string => `shards: ${shards}`
const toText = (shards: number): string => (shards === 1 ? 'one node' : `${shards} shards`)

/**
 * @returns null, or what is wrong, as the end of a sentence: a server was migrated for another
 *   number of shards
 */
export async function findOtherSpread(
  client: ClickhouseNode,
  { database, all }: { database: string; all: string },
  shards: number,
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
  const before = isOfOne ? 1 : Number(comment?.match(/^shards: (\d+)$/)?.[1] ?? shards)
  if (before === shards) return null
  return (
    `was migrated as ${toText(before)}, and CLICKHOUSE_CLUSTER makes it ${toText(shards)}. ` +
    'Rows never move: name the same servers as before, or begin with empty ones'
  )
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
