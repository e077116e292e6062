/**
 * The Postgres of a migration: creates the database when it is missing, says what is wrong with
 * one, and lets one process migrate at a time.
 */

import { type Lease, withLease } from '#shared/io/leases/leases.ts'
import { inspectServer } from '#shared/io/migrations/postgres-check.ts'
import {
  createPostgres,
  isSqlState,
  type Postgres,
  PostgresUnavailableError,
  type Queryable,
  sqlStates,
  untilPostgresAnswers,
} from '#shared/io/postgres/postgres.ts'
import { ReadOnlyServerError } from '#shared/io/postgres/postgres-session.ts'
import { schemaName } from '#shared/io/postgres/session-settings.ts'
import { describeConnectFault, UnfitServerError } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import { replaceDatabase } from '#shared/io/process/server-addresses.ts'
import { MigrationError, readMigrations, sqlFolders } from './migration-files.ts'

/** How to wait for a server: until `signal` ends the wait. */
type Wait = { log: Log; signal?: AbortSignal }

/** One for both databases. */
const migrationLease = 'migrations'

/**
 * Runs `work` while no other process migrates.
 * @throws MigrationError when the database is not what the service needs
 */
export async function withMigrationLease<T>(
  postgresUrl: string,
  wait: Wait,
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  return withPostgres(postgresUrl, wait, async (postgres) => {
    await awaitPostgres(postgres, wait)
    await requireFitPostgres(postgres)
    await ensureLeases(postgres)
    const leases = { renewals: postgres, work: postgres }
    const done = await withLease(
      leases,
      migrationLease,
      async (lease) => ({ result: await work(lease) }),
      Number.POSITIVE_INFINITY,
    )
    return done!.result
  })
}

/** The table of leases is there before the first migration, which one process at a time applies. */
async function ensureLeases(postgres: Postgres): Promise<void> {
  const migrations = await readMigrations(sqlFolders.postgres)
  const { text } = migrations.find(({ name }) => name.endsWith('-leases.sql'))!
  try {
    await postgres.query(text)
  } catch (error) {
    // Another process created it at the same moment.
    if (!isSqlState(error, sqlStates.uniqueViolation)) throw error
  }
}

/** Creates the database of the URL, in UTF8, when it is missing. @throws MigrationError */
export async function ensurePostgresDatabase(url: string, wait: Wait): Promise<void> {
  const { log } = wait
  const missing = await withPostgres(url, wait, async (postgres) => {
    try {
      await awaitPostgres(postgres, wait)
      return false
    } catch (error) {
      if (isSqlState(error, sqlStates.invalidCatalogName)) return true
      throw error
    }
  })
  if (!missing) return
  const { url: maintenance, replaced: name } = replaceDatabase(url, 'postgres')
  const inUtf8 = `create database "${name.replaceAll('"', '""')}" encoding 'UTF8' template template0`
  await withPostgres(maintenance, { log, own: false }, async (postgres) => {
    try {
      await postgres.query(inUtf8)
      log.info({ database: name }, 'created the Postgres database')
    } catch (error) {
      // Another process created it at the same moment.
      const raced =
        isSqlState(error, sqlStates.duplicateDatabase) ||
        isSqlState(error, sqlStates.uniqueViolation)
      if (raced) return
      if (!isSqlState(error, sqlStates.invalidParameterValue)) throw error
      throw new MigrationError(
        `Postgres cannot create the database (${(error as Error).message}). Create it: ` +
          `${inUtf8} locale_provider libc locale 'C'`,
      )
    }
  })
}

async function withPostgres<T>(
  url: string,
  { log, own = true }: { log: Log; own?: boolean },
  work: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const postgres = createPostgres(url, {
    role: 'migrate',
    log,
    own,
    // One for the lease, one for the work.
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

/** @throws MigrationError when it answers, and the database is not what the service needs */
async function awaitPostgres(postgres: Postgres, wait: Wait): Promise<void> {
  const tryOnce = async () => {
    try {
      await postgres.query('select 1')
    } catch (error) {
      const { cause } = error as Error
      // A standby may become the primary; nothing else changes while it is waited for.
      const lasts = cause instanceof UnfitServerError && !(cause instanceof ReadOnlyServerError)
      throw lasts ? new MigrationError(`Postgres ${cause.message}`) : error
    }
  }
  try {
    await untilPostgresAnswers(tryOnce, wait)
  } catch (error) {
    if (!(error instanceof PostgresUnavailableError)) throw error
    throw new MigrationError(`Postgres ${describeConnectFault(error)}`)
  }
}

/** @throws MigrationError when the server or its user cannot have the tables */
export async function requireFitPostgres(db: Queryable): Promise<void> {
  const { server, readOnly } = await inspectServer(db)
  const unfit = server ?? readOnly?.message ?? (await findMissingRight(db))
  if (unfit !== null) throw new MigrationError(`Postgres ${unfit}`)
}

/** @returns null, or what the user that migrates may not do, as the end of a sentence */
async function findMissingRight(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ may_create: boolean; role: string }>(
    `select has_schema_privilege('${schemaName}', 'create') as may_create, current_user as role`,
  )
  const { may_create: mayCreate, role } = rows[0]!
  if (mayCreate) return null
  return `does not let its user create tables: grant create on schema ${schemaName} to "${role}"`
}
