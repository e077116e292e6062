/**
 * Migrates both databases to the schema of this release: numbered SQL files, forward only, each
 * applied once, and then the views of analysts. The applied files must be a prefix of the folder's
 * files, byte for byte, or the migration is refused. A release that was rolled back finds a newer
 * schema and leaves it as it is. Any number of processes may run it at once: a lease in Postgres
 * lets one work, and the others then find nothing to do.
 */
import { ClickHouseError } from '@clickhouse/client'
import type { toViewParts } from '#shared/core/analytics/view-sql.ts'
import { describeOldServer, type ServerName } from '#shared/core/base/server-versions.ts'
import { toAllDatabase } from '#shared/core/base/shards.ts'
import { splitStatements } from '#shared/core/base/sql-statements.ts'
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { toClickhouseOwnerGrants } from '#shared/core/permissions/table-privileges.ts'
import { guardViews, prepareAccess } from '#shared/io/analytics/analyst-access-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import {
  type ClickhouseNode,
  createClickhouse,
  databaseOf,
  quoteName,
  type ShardUrls,
} from '#shared/io/clickhouse/clickhouse.ts'
import { findMissingGrants, readText } from '#shared/io/clickhouse/missing-grants.ts'
import type { Lease } from '#shared/io/leases/leases.ts'
import { roleSettings } from '#shared/io/migrations/process-sessions.ts'
import { applyRoles, forbidLargeObjects } from '#shared/io/postgres/postgres-roles.ts'
import { describeConnectFault, describeFixedSetting } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import { applyViews } from './apply-views.ts'
import { type Migration, MigrationError, readMigrations, sqlFolders } from './migration-files.ts'
import { ensurePostgresDatabase, withMigrationLease } from './postgres-database.ts'
import { awaitCopies, toStatementOfReplica } from './replica-tables.ts'
import {
  copiesRows,
  createDatabases,
  findMisplaced,
  findOtherSpread,
  followTable,
  type Place,
} from './shard-tables.ts'
import { readViews, type Views } from './view-files.ts'

type Applied = { name: string; checksum: string }

export type MigrateOptions = {
  log: Log
  /** Ends the wait for a server that does not answer. */
  signal?: AbortSignal
  /** Overrides the release's own folder, for tests. */
  folder?: string
  /** Overrides what the views have of the signal catalog, for tests. */
  viewParts?: ReturnType<typeof toViewParts>
  /** Passwords of the processes' roles in Postgres; a process without one gets no role. */
  rolePasswords?: Readonly<Partial<Record<ProcessName, string>>>
  /** The servers of ClickHouse; without any there is one node. */
  shardUrls?: ShardUrls
  /** How many days audit entries are kept, 0 forever; without it the database keeps its setting. */
  auditRetentionDays?: number
}

/** How long a server that is starting may take for its first answer. */
const answerMaxMs = 10_000
/** Time limit of a statement, which may rewrite a large table. */
const statementMaxMs = 30 * 60_000

/**
 * Creates the database when it is missing and applies new files, each in one transaction.
 * @param url of the database
 * @returns the names of the files applied now
 * @throws MigrationError when an applied file was changed, or an earlier one is missing
 */
export async function migratePostgres(url: string, options: MigrateOptions): Promise<string[]> {
  const migrations = await readMigrations(options.folder ?? sqlFolders.postgres)
  await ensurePostgresDatabase(url, options)
  return withMigrationLease(url, options, async (lease) => {
    await lease.query(
      `create table if not exists schema_migrations (
         name text primary key,
         checksum text not null,
         applied_at timestamptz not null default clock_timestamp())`,
    )
    const { rows } = await lease.query<Applied>('select name, checksum from schema_migrations')
    const { pending, newer } = findPending(migrations, rows, 'Postgres')
    if (newer.length > 0) {
      // The roles stay too: processes of the newer release may still be running.
      options.log.warn({ migrations: newer }, 'Postgres has the schema of a newer release')
      return []
    }
    for (const { name, text, checksum } of pending) {
      await lease.transaction(async (tx) => {
        // A waiting DDL statement blocks all later readers of its table, so give up early.
        await tx.query("set local lock_timeout = '15s'")
        await tx.query(text)
        await tx.query('insert into schema_migrations (name, checksum) values ($1, $2)', [
          name,
          checksum,
        ])
      })
      options.log.info({ migration: name }, 'migrated Postgres')
    }
    if (options.auditRetentionDays !== undefined) {
      await lease.query('update audit_retention set days = $1', [options.auditRetentionDays])
    }
    // Also without new files: privileges or passwords may have changed.
    const roles = await lease.transaction((tx) =>
      applyRoles(tx, { passwords: options.rolePasswords ?? {}, settings: roleSettings }),
    )
    if (roles.length > 0) {
      options.log.info({ roles }, 'updated the roles of Postgres')
      if (!(await lease.transaction(forbidLargeObjects))) {
        options.log.warn(
          'every role may make large objects, which fill the disk: let a superuser take that ' +
            'away, see "Large objects" in deploy/README.md',
        )
      }
    }
    return pending.map(({ name }) => name)
  })
}

/**
 * Creates the database when it is missing and applies new files and changed views, on one server
 * after another.
 * ClickHouse has no transactions around DDL, so a file that failed half-way is run again in full:
 * its statements use `if not exists`.
 * @param url with the database in its path, `device_intelligence` by default
 * @param postgresUrl where the lease is; null without one, for tests
 * @returns the names of the files applied now
 * @throws MigrationError when the user lacks a grant, an applied file was changed, or an earlier
 *   one is missing
 */
export async function migrateClickhouse(
  url: string,
  postgresUrl: string | null,
  options: MigrateOptions,
): Promise<string[]> {
  const folder = options.folder ?? sqlFolders.clickhouse
  const migrations = await readMigrations(folder)
  const views = await readViews(folder, options.viewParts)
  const shardUrls = options.shardUrls ?? []
  const work = async (lease: Lease | null) => {
    const servers = shardUrls.length === 0 ? [url] : shardUrls.flat()
    for (const one of servers) await awaitClickhouse(one, options)
    // Of all, before any of them changes.
    for (const one of servers) await requireFitServer(one, shardUrls)
    const common = { migrations, views, lease, options }
    if (shardUrls.length === 0) {
      return applyToServer(url, { ...common, place: null, leaderUrl: null })
    }
    const applied = new Set<string>()
    for (const [at, urls] of shardUrls.entries()) {
      const [leaderUrl, ...others] = await leaderFirst(urls)
      for (const one of [leaderUrl!, ...others]) {
        const place = {
          shard: at + 1,
          shards: shardUrls.length,
          replicas: urls.length,
          replica: new URL(one).host,
        }
        const work = { ...common, place, leaderUrl: one === leaderUrl ? null : leaderUrl! }
        for (const name of await applyToServer(one, work)) applied.add(name)
      }
    }
    return [...applied]
  }
  return postgresUrl === null ? work(null) : withMigrationLease(postgresUrl, options, work)
}

/** The replica that has applied the most files is first: another one may have been replaced. */
async function leaderFirst(urls: readonly string[]): Promise<string[]> {
  if (urls.length === 1) return [...urls]
  const counts = await Promise.all(
    urls.map((url) =>
      withClickhouse(url, 'default', async (client) => {
        const result = await client.query({
          query: `select sum(total_rows) from system.tables
                  where database = {database:String} and name = 'schema_migrations'`,
          query_params: { database: databaseOf(url) },
          format: 'JSONCompactEachRow',
        })
        const [row] = await result.json<[number | string | null]>()
        return { url, files: Number(row![0]) }
      }),
    ),
  )
  return counts.sort((one, other) => other.files - one.files).map(({ url }) => url)
}

type ServerWork = {
  migrations: Migration[]
  views: Views
  lease: Lease | null
  /** Null of the only node. */
  place: Place | null
  /** The replica of the shard that was migrated first; null of that one. */
  leaderUrl: string | null
  options: MigrateOptions
}

async function applyToServer(
  url: string,
  { migrations, views, lease, place, leaderUrl, options: { log } }: ServerWork,
): Promise<string[]> {
  const database = databaseOf(url)
  const all = place === null ? database : toAllDatabase(database)
  const hasReplicas = (place?.replicas ?? 1) > 1
  await withClickhouse(url, 'default', async (client) => {
    const names = { database, all: toAllDatabase(database) }
    const misplaced = place === null ? null : await findMisplaced(client, place)
    if (misplaced !== null) throw new MigrationError(misplaced)
    const otherSpread = await findOtherSpread(client, names, {
      shards: place?.shards ?? 0,
      hasReplicas,
    })
    if (otherSpread !== null) throw new MigrationError(`ClickHouse ${otherSpread}`)
    await createDatabases(client, names, place)
  })
  const apply = async ({ client, ofAll, leader }: Connections) => {
    await client.command({
      query: `create table if not exists schema_migrations (
        name String, checksum String, applied_at DateTime64(3) default now64(3)
      ) engine = MergeTree order by name`,
    })
    const result = await client.query({
      query: 'select name, checksum from schema_migrations',
      format: 'JSONEachRow',
    })
    const found = await result.json<Applied>()
    const { pending, newer } = findPending(migrations, found, 'ClickHouse')
    if (newer.length > 0) {
      log.warn({ migrations: newer }, 'ClickHouse has the schema of a newer release')
      return []
    }
    const isCopied = place !== null && (await copiesRows(client, { database, hasReplicas }))
    for (const { name, text, checksum } of pending) {
      for (const statement of splitStatements(text)) {
        // A view in a numbered file is that of an earlier release; its own file has the present one.
        if (statement.includes(viewMark)) continue
        // Fails when the lease is lost: another process may be migrating by now.
        await lease?.check()
        const own = isCopied
          ? await toStatementOfReplica(statement, { ...place, database }, leader)
          : statement
        // The views of analytics show the rows of all shards.
        const session = statement.includes(analyticsMark) ? ofAll : client
        if (own !== null) {
          await session.command({
            query: nameDatabases(own, { database, all }),
            clickhouse_settings: isCopied ? { alter_sync: '2' } : {},
          })
        }
        if (place !== null) await followTable(client, statement, { database, all })
      }
      await client.insert({
        table: 'schema_migrations',
        values: [{ name, checksum }],
        format: 'JSONEachRow',
      })
      log.info({ migration: name, ...place }, 'migrated ClickHouse')
    }
    const replaced = await applyViews(views, {
      client,
      analytics: toAnalyticsDatabase(database),
      run: async (statement) => {
        await lease?.check()
        await ofAll.command({ query: nameDatabases(statement, { database, all }) })
      },
      log,
    })
    if (replaced.length > 0) log.info({ views: replaced, ...place }, 'replaced the views')
    // Row policies do not reach through a table of all shards: there are no analysts then.
    if (place === null) {
      // Also without new files: the reader may have been created after the views.
      await prepareAccess(client, database)
      await guardViews(client, database)
    }
    if (isCopied) await awaitCopies(client, database, statementMaxMs)
    return [...pending.map(({ name }) => name), ...replaced.map((name) => `views/${name}.sql`)]
  }
  return withClickhouse(url, database, (client) => {
    if (place === null) return apply({ client, ofAll: client, leader: null })
    return withClickhouse(url, all, (ofAll) =>
      leaderUrl === null
        ? apply({ client, ofAll, leader: null })
        : withClickhouse(leaderUrl, database, (leader) => apply({ client, ofAll, leader })),
    )
  })
}

type Connections = {
  client: ClickhouseNode
  /** To the tables of all shards. */
  ofAll: ClickhouseNode
  /** Null on the leader. */
  leader: ClickhouseNode | null
}

/** @throws MigrationError when the server is too old, or its user lacks a grant */
async function requireFitServer(url: string, shardUrls: ShardUrls): Promise<void> {
  const database = databaseOf(url)
  const names = {
    database,
    all: shardUrls.length === 0 ? null : toAllDatabase(database),
    analytics: toAnalyticsDatabase(database),
  }
  const hasReplicas = shardUrls.some((urls) => urls.length > 1)
  await withClickhouse(url, 'default', async (client) => {
    requireVersion('ClickHouse', await readText(client, 'select version()', statementMaxMs))
    const grants = toClickhouseOwnerGrants(names, hasReplicas)
    const missing = await findMissingGrants(client, grants, statementMaxMs)
    if (missing.length === 0) return
    throw new MigrationError(
      `ClickHouse at ${new URL(url).host} does not grant its user ${missing.join('; ')}. Nothing ` +
        'was changed in ClickHouse. clickhouse/README.md lists what the user of migrate needs.',
    )
  })
}

/** @throws MigrationError when the server is too old for this release */
function requireVersion(server: ServerName, version: string): void {
  const old = describeOldServer(server, version)
  if (old !== null) throw new MigrationError(`${server} ${old}`)
}

/**
 * @returns the files that are not applied yet, and the names of those that only a newer release has
 * @throws MigrationError when an applied file was changed, or files before the last one differ
 */
function findPending(
  migrations: Migration[],
  applied: Applied[],
  where: string,
): { pending: Migration[]; newer: string[] } {
  const checksums = new Map(migrations.map(({ name, checksum }) => [name, checksum]))
  for (const { name, checksum } of applied) {
    if (!checksums.has(name) || checksums.get(name) === checksum) continue
    throw new MigrationError(
      `${name} was changed after it had been applied to ${where}. Undo the change and put it ` +
        'into a new file.',
    )
  }
  const done = new Set(applied.map(({ name }) => name))
  const pending = migrations.filter(({ name }) => !done.has(name))
  const newer = [...done].filter((name) => !checksums.has(name)).sort()
  const last = migrations.at(-1)?.name ?? ''
  const foreign = newer.find((name) => pending.length > 0 || name < last)
  if (foreign !== undefined) {
    throw new MigrationError(
      `${where} has the migration ${foreign}, which this release does not have, and it does not ` +
        'follow those of this release. Are they of different branches?',
    )
  }
  const late = pending.find((_, index) => migrations[done.size + index] !== pending[index])
  if (late === undefined) return { pending, newer }
  throw new MigrationError(`${late.name} is numbered before migrations that ${where} has applied`)
}

async function awaitClickhouse(url: string, { log, signal }: MigrateOptions): Promise<void> {
  await withClickhouse(url, 'default', async (client) => {
    for (let logged = false; ; logged = true) {
      try {
        await readText(client, 'select 1', answerMaxMs)
        return
      } catch (error) {
        // Waiting does not change a refusal.
        if (error instanceof ClickHouseError) throw toMigrationError(error)
        if (signal?.aborted) throw new MigrationError(`ClickHouse ${describeConnectFault(error)}`)
        if (!logged) log.warn({ err: error }, 'ClickHouse does not answer; waiting for it')
      }
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  })
}

/** A setting that the user may not send is named; every other refusal is what it is. */
function toMigrationError(error: ClickHouseError): Error {
  const fault = describeFixedSetting(error)
  return fault === null ? error : new MigrationError(`ClickHouse ${fault}`)
}

/** @param database the one of `create database` is not there yet */
async function withClickhouse<T>(
  url: string,
  database: string,
  work: (client: ClickhouseNode) => Promise<T>,
): Promise<T> {
  const client = createClickhouse(url, {
    name: 'migrate',
    database,
    requestTimeoutMs: statementMaxMs,
  })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

const analyticsMark = '{analytics:Identifier}'
const viewMark = `create or replace view ${analyticsMark}`

/**
 * Replaces the placeholders of the databases whose names depend on the internal one: that of the
 * views, and that of the tables of all shards.
 */
const nameDatabases = (statement: string, { database, all }: { database: string; all: string }) =>
  statement
    .replaceAll(analyticsMark, quoteName(toAnalyticsDatabase(database)))
    .replaceAll('{all:Identifier}', quoteName(all))
