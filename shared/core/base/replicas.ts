/**
 * Replicas of a shard of ClickHouse: servers with the same rows, which they copy from each other.
 * The migrations are written for one node; this is what their statements are on a replica.
 */

/** Where the table of a replica belongs. */
export type ReplicaPlace = {
  database: string
  /** From 1. */
  shard: number
  /** Host and port of the server's HTTP address: its name in Keeper. */
  replica: string
}

const createTable = /^create table if not exists (\w+)/m
const plainEngine = /^engine = (\w+)(?:\(([^()]*)\))?/m

/** @returns the table that a statement of the migrations creates, or null */
export const toCreatedTable = (statement: string): string | null =>
  createTable.exec(statement)?.[1] ?? null

/**
 * Whether a statement changes rows or columns, which reaches every replica from one of them. Views
 * are each server's own.
 */
export const runsOnceAShard = (statement: string): boolean =>
  /^insert into /m.test(statement) ||
  (/^alter table /m.test(statement) && !/ modify query$/m.test(statement))

/**
 * Renders a statement with the engine whose rows are copied. Other statements stay as they are.
 * @throws Error when the engine of a table is not found
 */
export function toReplicatedTable(statement: string, place: ReplicaPlace): string {
  const table = toCreatedTable(statement)
  if (table === null) return statement
  const [, engine, values] = plainEngine.exec(statement) ?? []
  if (!engine?.endsWith('MergeTree')) throw new Error(`the engine of ${table} was not found`)
  const path = `/clickhouse/tables/${place.database}/${place.shard}/${table}`
  const all = [quoteText(path), quoteText(place.replica), ...(values === undefined ? [] : [values])]
  return statement.replace(plainEngine, () => `engine = Replicated${engine}(${all.join(', ')})`)
}

const replicatedEngine = /(ENGINE = Replicated\w+\('[^']*', )'[^']*'/

/**
 * The statement that creates a table on another replica, as it is now: columns may have been added
 * since the migration that made it, and Keeper takes replicas with the same columns only.
 * @param created `create_table_query` of a replica that has the table
 * @throws Error when it is no replicated table
 */
export function toTableOfReplica(created: string, replica: string): string {
  if (!created.startsWith('CREATE TABLE ') || !replicatedEngine.test(created)) {
    throw new Error(`not a replicated table: ${created.slice(0, 80)}`)
  }
  return created
    .replace('CREATE TABLE ', 'CREATE TABLE IF NOT EXISTS ')
    .replace(replicatedEngine, (_, before: string) => before + quoteText(replica))
}

const quoteText = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
