/** What a shard of ClickHouse has beside its own tables: the same tables with the rows of all. */
import { clusterName, toDistributedTable } from '#shared/core/base/shards.ts'
import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'

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
