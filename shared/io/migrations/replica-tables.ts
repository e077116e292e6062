/**
 * Migrates the replicas of a shard: the first of them is the leader, and gets the statements with
 * engines that copy rows. The others make its tables as they are then, and get what is written and
 * altered from it. Views are each server's own.
 */
import {
  type ReplicaPlace,
  runsOnceAShard,
  toCreatedTable,
  toReplicatedTable,
  toTableOfReplica,
} from '#shared/core/base/replicas.ts'
import { type ClickhouseNode, quoteName } from '#shared/io/clickhouse/clickhouse.ts'

/**
 * @param leader null on the leader itself
 * @returns what to run for a statement of the migrations; null for nothing
 */
export async function toStatementOfReplica(
  statement: string,
  place: ReplicaPlace,
  leader: ClickhouseNode | null,
): Promise<string | null> {
  if (leader === null) return toReplicatedTable(statement, place)
  if (runsOnceAShard(statement)) return null
  const table = toCreatedTable(statement)
  if (table === null) return statement
  const result = await leader.query({
    query: `select create_table_query from system.tables
            where database = {database:String} and name = {table:String}`,
    query_params: { database: place.database, table },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<[string]>()
  if (row === undefined) throw new Error(`the leader of the shard has no table ${table}`)
  return toTableOfReplica(row[0], place.replica)
}

/** Resolves when a replica has every row that was acknowledged before. @throws after `limitMs` */
export async function awaitCopies(
  client: ClickhouseNode,
  database: string,
  limitMs: number,
): Promise<void> {
  const result = await client.query({
    query: `select name from system.tables
            where database = {database:String} and engine like 'Replicated%'`,
    query_params: { database },
    format: 'JSONCompactEachRow',
  })
  for (const [table] of await result.json<[string]>()) {
    await client.command({
      query: `system sync replica ${quoteName(database)}.${quoteName(table)} lightweight`,
      clickhouse_settings: { receive_timeout: limitMs / 1_000 },
    })
  }
}
