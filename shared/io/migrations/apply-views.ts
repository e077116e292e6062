/**
 * Gives a server the views of this release: those whose text is another one than it has are
 * replaced, and `schema_views` keeps what it has. A server with views of a newer release keeps
 * them: processes of this one find their columns there, since columns are only added.
 */
import { ClickHouseError } from '@clickhouse/client'
import { readerUser } from '#shared/core/analytics/analyst-access.ts'
import { withDefiner } from '#shared/core/analytics/view-sql.ts'
import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { View, Views } from './view-files.ts'

type ViewsOptions = {
  /** Of the service's own database. */
  client: ClickhouseNode
  /** The database of the views. */
  analytics: string
  /** Runs a statement of a view, in the database that it reads. */
  run: (statement: string) => Promise<void>
  log: Log
}

/** @returns the names of the views that were created or replaced now */
export async function applyViews(
  { views, version }: Views,
  { client, analytics, run, log }: ViewsOptions,
): Promise<string[]> {
  if (views.length === 0) return []
  await client.command({
    query: `create table if not exists schema_views (
      name String, checksum String, version UInt32, applied_at DateTime64(6) default now64(6)
    ) engine = ReplacingMergeTree(applied_at) order by name`,
  })
  const applied = await readRows<Applied>(
    client,
    'select name, checksum, version from schema_views final',
  )
  const newest = Math.max(0, ...applied.map((one) => one.version))
  if (newest > version) {
    log.warn({ version, newest }, 'ClickHouse has the views of a newer release')
    return []
  }
  const present = await readPresent(client, analytics)
  const known = new Map(applied.map(({ name, checksum }) => [name, checksum]))
  // A view may be gone: a restored database of tables says that it was applied.
  const changed = views.filter(
    ({ name, checksum }) => known.get(name) !== checksum || !present.has(name),
  )
  const closed: string[] = []
  for (const view of changed) {
    const isRead = await replaceView(view, { isGuarded: present.get(view.name) === true, run })
    if (!isRead) closed.push(view.name)
  }
  if (closed.length > 0) log.warn({ views: closed }, closedViews)
  if (changed.length > 0 || newest < version) {
    const values = views.map(({ name, checksum }) => ({ name, checksum, version }))
    await client.insert({ table: 'schema_views', values, format: 'JSONEachRow' })
  }
  return changed.map(({ name }) => name)
}

const closedViews =
  'analysts cannot read these views: the user that migrates may not set their definer. ' +
  `Grant it SET DEFINER ON ${readerUser} and ALTER VIEW MODIFY SQL SECURITY ON the database of ` +
  'the views, and migrate again'

type Applied = { name: string; checksum: string; version: number }

/** The views that are there, and whether each reads as the reader of analysts. */
async function readPresent(
  client: ClickhouseNode,
  analytics: string,
): Promise<Map<string, boolean>> {
  const rows = await readRows<{ name: string; guarded: number }>(
    client,
    `select name, position(create_table_query, {mark:String}) > 0 as guarded
     from system.tables where database = {analytics:String}`,
    { analytics, mark: `DEFINER = ${readerUser}` },
  )
  return new Map(rows.map(({ name, guarded }) => [name, Number(guarded) === 1]))
}

async function readRows<Row>(
  client: ClickhouseNode,
  query: string,
  params: Record<string, string> = {},
): Promise<Row[]> {
  const result = await client.query({ query, query_params: params, format: 'JSONEachRow' })
  return result.json<Row>()
}

/**
 * A view that analysts read is replaced by one that they can read, in one statement.
 * @returns false when analysts could read it and cannot any more
 */
async function replaceView(
  { text }: View,
  { isGuarded, run }: Pick<ViewsOptions, 'run'> & { isGuarded: boolean },
): Promise<boolean> {
  const statement = text.trim().replace(/;$/, '')
  if (isGuarded) {
    try {
      await run(withDefiner(statement, readerUser))
      return true
    } catch (error) {
      if (!(error instanceof ClickHouseError) || error.code !== accessDenied) throw error
    }
  }
  await run(statement)
  return !isGuarded
}

const accessDenied = '497'
