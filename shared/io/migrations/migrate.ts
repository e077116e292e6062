/**
 * Brings both databases to the schema of this release: numbered SQL files, forward only, each
 * applied once. One runner serves both, so that one law holds for both: what was applied is the
 * beginning of what is in the folder, byte for byte, or the migration refuses. Any number of
 * processes may run it at once; a lock in Postgres lets one work while the others wait and then
 * find nothing to do.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { splitStatements } from '#shared/core/base/sql-statements.ts'
import type { ProcessName } from '#shared/core/permissions/process-permissions.ts'
import { guardViews, prepareAccess } from '#shared/io/analytics/analyst-access-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { databaseOf, quoteName } from '#shared/io/clickhouse/clickhouse.ts'
import { withNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import {
  createPostgres,
  isSqlState,
  type Postgres,
  type Session,
  sqlStates,
  untilPostgresAnswers,
} from '#shared/io/postgres/postgres.ts'
import { applyRoles } from '#shared/io/postgres/postgres-roles.ts'
import { roleSettings } from '#shared/io/postgres/process-sessions.ts'
import type { Log } from '#shared/io/process/log.ts'

export type Migration = {
  name: string
  text: string
  checksum: string
  /** Checksums of earlier texts that lead to the same: whoever has applied one has applied this. */
  replaces: string[]
}
type Applied = { name: string; checksum: string }

export type MigrateOptions = {
  log: Log
  /** Ends the wait for a server that does not answer. */
  signal?: AbortSignal
  /** Another folder than this release's own. */
  folder?: string
  /** Of the roles that processes sign in to Postgres with; none are made without. */
  rolePasswords?: Readonly<Partial<Record<ProcessName, string>>>
}

/** The schema and the files do not belong together; a person has to look. */
export class MigrationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MigrationError'
  }
}

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))
/** A statement of a migration may rewrite a large table. */
const statementMaxMs = 30 * 60_000
/** One lock for both databases, since both are migrated together. */
const migrationLock = 'migrations'

/**
 * Creates the database when it is missing and applies what is new, each file in one transaction.
 * @param url of the database to migrate
 * @returns the names of the files applied now
 * @throws MigrationError when an applied file is gone or was changed
 */
export async function migratePostgres(url: string, options: MigrateOptions): Promise<string[]> {
  const migrations = await readMigrations(options.folder ?? join(projectFolder, 'postgres'))
  await ensurePostgresDatabase(url, options)
  return withMigrationLock(url, options, async (session) => {
    await session.query(
      `create table if not exists schema_migrations (
         name text primary key,
         checksum text not null,
         applied_at timestamptz not null default clock_timestamp())`,
    )
    const { rows } = await session.query<Applied>('select name, checksum from schema_migrations')
    const pending = findPending(migrations, rows, 'Postgres')
    for (const { name, text, checksum } of pending) {
      await session.transaction(async (tx) => {
        // Better to fail than to stand in line before every reader of a busy table.
        await tx.query("set local lock_timeout = '15s'")
        await tx.query(text)
        await tx.query('insert into schema_migrations (name, checksum) values ($1, $2)', [
          name,
          checksum,
        ])
      })
      options.log.info({ migration: name }, 'migrated Postgres')
    }
    // Also with nothing to apply: rights or passwords may have changed.
    const roles = await session.transaction((tx) =>
      applyRoles(tx, { passwords: options.rolePasswords ?? {}, settings: roleSettings }),
    )
    if (roles.length > 0) options.log.info({ roles }, 'roles of Postgres are as they should be')
    return pending.map(({ name }) => name)
  })
}

/**
 * Creates the database when it is missing and applies what is new. ClickHouse has no transactions
 * around DDL, so a file that failed half-way is run again as a whole: its statements say
 * `if not exists`.
 * @param url with the database in its path, `device_intelligence` by default
 * @param postgresUrl where the lock is held; null when nobody else can be migrating (a test)
 */
export async function migrateClickhouse(
  url: string,
  postgresUrl: string | null,
  options: MigrateOptions,
): Promise<string[]> {
  const migrations = await readMigrations(options.folder ?? join(projectFolder, 'clickhouse'))
  const work = (session: Session | null) => applyToClickhouse(url, migrations, session, options)
  return postgresUrl === null ? work(null) : withMigrationLock(postgresUrl, options, work)
}

async function applyToClickhouse(
  url: string,
  migrations: Migration[],
  lock: Session | null,
  options: MigrateOptions,
): Promise<string[]> {
  const { log } = options
  const database = databaseOf(url)
  await awaitClickhouse(url, options)
  await withClickhouse(url, 'default', (client) =>
    client.command({ query: `create database if not exists ${quoteName(database)}` }),
  )
  return withClickhouse(url, database, async (client) => {
    await client.command({
      query: `create table if not exists schema_migrations (
        name String, checksum String, applied_at DateTime64(3) default now64(3)
      ) engine = MergeTree order by name`,
    })
    const result = await client.query({
      query: 'select name, checksum from schema_migrations',
      format: 'JSONEachRow',
    })
    const pending = findPending(migrations, await result.json<Applied>(), 'ClickHouse')
    for (const { name, text, checksum } of pending) {
      for (const statement of splitStatements(text)) {
        // Where the lock is lost this fails: somebody else may be migrating by now.
        await lock?.query('select 1')
        await client.command({ query: nameDatabases(statement, database) })
      }
      await client.insert({
        table: 'schema_migrations',
        values: [{ name, checksum }],
        format: 'JSONEachRow',
      })
      log.info({ migration: name }, 'migrated ClickHouse')
    }
    // Also with nothing to apply: the reader may be newer than the views.
    await prepareAccess(client, database)
    await guardViews(client, database)
    return pending.map(({ name }) => name)
  })
}

/**
 * The numbered files of a folder in order.
 * @throws MigrationError when the numbers are not 0001, 0002, ... without a gap or a repetition
 */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  names.forEach((name, index) => {
    const number = String(index + 1).padStart(4, '0')
    if (new RegExp(`^${number}-[a-z0-9-]+\\.sql$`).test(name)) return
    throw new MigrationError(`${join(folder, name)}: expected the file ${number}-<what>.sql here`)
  })
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8')
      const replaces = [...text.matchAll(/^-- replaces ([0-9a-f]{64})$/gm)].map(([, one]) => one!)
      return { name, text, checksum: hash('sha256', text, 'hex'), replaces }
    }),
  )
}

/** What is not applied yet, after making sure that the rest is what was applied. */
function findPending(migrations: Migration[], applied: Applied[], where: string): Migration[] {
  const known = new Map(
    migrations.map(({ name, checksum, replaces }) => [name, [checksum, ...replaces]]),
  )
  for (const { name, checksum } of applied) {
    const present = known.get(name)
    if (present === undefined) {
      throw new MigrationError(
        `${where} has the migration ${name}, which this release does not know: is it older than ` +
          'the database?',
      )
    }
    if (!present.includes(checksum)) {
      throw new MigrationError(
        `${name} was changed after it had been applied to ${where}. Applied files stay as they ` +
          'are; a change is a new file.',
      )
    }
  }
  const done = new Set(applied.map(({ name }) => name))
  const pending = migrations.filter(({ name }) => !done.has(name))
  const late = pending.find((_, index) => migrations[done.size + index] !== pending[index])
  if (late === undefined) return pending
  throw new MigrationError(`${late.name} comes before migrations that ${where} has already`)
}

async function withMigrationLock<T>(
  postgresUrl: string,
  { log, signal }: MigrateOptions,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return withPostgres(postgresUrl, log, async (postgres) => {
    await untilPostgresAnswers(() => postgres.query('select 1'), toWait(log, signal))
    return withNamedLock({ holders: postgres, work: postgres }, migrationLock, work)
  })
}

async function ensurePostgresDatabase(url: string, options: MigrateOptions): Promise<void> {
  const { log, signal } = options
  const missing = await withPostgres(url, log, async (postgres) => {
    try {
      await untilPostgresAnswers(() => postgres.query('select 1'), toWait(log, signal))
      return false
    } catch (error) {
      if (isSqlState(error, sqlStates.invalidCatalogName)) return true
      throw error
    }
  })
  if (!missing) return
  const maintenance = new URL(url)
  const name = decodeURIComponent(maintenance.pathname.slice(1))
  maintenance.pathname = '/postgres'
  await withPostgres(maintenance.href, log, async (postgres) => {
    try {
      await postgres.query(`create database "${name.replaceAll('"', '""')}"`)
      log.info({ database: name }, 'created the Postgres database')
    } catch (error) {
      // Whoever else creates it at this moment does the same; the catalog's index tells the loser.
      const raced =
        isSqlState(error, sqlStates.duplicateDatabase) ||
        isSqlState(error, sqlStates.uniqueViolation)
      if (!raced) throw error
    }
  })
}

async function withPostgres<T>(
  url: string,
  log: Log,
  work: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const postgres = createPostgres(url, {
    role: 'migrate',
    log,
    // One holds the lock, one works.
    connectionsMax: 2,
    statementTimeoutMs: 0,
    lockTimeoutMs: 0,
  })
  try {
    return await work(postgres)
  } finally {
    await postgres.close()
  }
}

const toWait = (log: Log, signal: AbortSignal | undefined) =>
  signal === undefined ? { log } : { log, signal }

async function awaitClickhouse(url: string, { log, signal }: MigrateOptions): Promise<void> {
  await withClickhouse(url, 'default', async (client) => {
    for (let said = false; ; said = true) {
      const answer = await client.ping({ select: true })
      if (answer.success) return
      // An answer that refuses us will not change by waiting.
      if ('type' in answer.error) throw answer.error
      if (!said) log.warn({ err: answer.error }, 'ClickHouse does not answer; waiting for it')
      signal?.throwIfAborted()
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  })
}

async function withClickhouse<T>(
  url: string,
  database: string,
  work: (client: ClickHouseClient) => Promise<T>,
): Promise<T> {
  const address = new URL(url)
  address.pathname = `/${encodeURIComponent(database)}`
  const client = createClient({
    url: address.href,
    request_timeout: statementMaxMs,
    // The client's own log would repeat statements on stderr; what fails is thrown.
    log: { level: ClickHouseLogLevel.OFF },
  })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

/**
 * Files name the database of the views by what it is; its name follows that of the internal one.
 */
const nameDatabases = (statement: string, database: string) =>
  statement.replaceAll('{analytics:Identifier}', quoteName(toAnalyticsDatabase(database)))
