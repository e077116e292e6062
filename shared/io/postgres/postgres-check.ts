/** Whether Postgres is what a process of this release needs, for `/readyz`. */
import { describeOldServer } from '#shared/core/base/server-versions.ts'
import type { ReadyCheck } from '#shared/io/http/internal-server.ts'
import type { SchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import {
  createFaultReporter,
  describeConnectFault,
  UnfitServerError,
} from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import { isSqlState, type Postgres, sqlStates } from './postgres.ts'
import { ReadOnlyServerError } from './postgres-session.ts'

export type PostgresCheck = {
  /** Null when it answers, is new enough and has this release's schema; else what is wrong. */
  reads: ReadyCheck
  /** The same, and that it takes writes. */
  writes: ReadyCheck
}

/** Logs each reason once. Failed connections are logged by the pool. */
export function createPostgresCheck(
  postgres: Postgres,
  { schemas, log }: { schemas: SchemaVersions; log: Log },
): PostgresCheck {
  // Apart, since a read-only server is fit for reads.
  const fitness = createFaultReporter('Postgres', log)
  const writability = createFaultReporter('Postgres', log)
  const inspect = async (): Promise<Inspection> => {
    const fault = await postgres.checkReady()
    if (fault !== null) return { fault, isReadOnly: false }
    try {
      const { version, isReadOnly } = await readServer(postgres)
      const unfit =
        describeOldServer('Postgres', version) ??
        (await schemas.compare('postgres', await readNewestMigration(postgres)))
      if (unfit !== null) return { fault: fitness.failed(new UnfitServerError(unfit)), isReadOnly }
      fitness.worked()
      return { fault: null, isReadOnly }
    } catch (error) {
      return { fault: describeConnectFault(error), isReadOnly: false }
    }
  }
  // One probe may begin both checks. They share what is read, and the next probe reads again.
  let shared: Promise<Inspection> | null = null
  const inspectOnce = (): Promise<Inspection> => {
    if (shared === null) {
      shared = inspect()
      setImmediate(() => {
        shared = null
      })
    }
    return shared
  }
  return {
    reads: async () => (await inspectOnce()).fault,
    writes: async () => {
      const { fault, isReadOnly } = await inspectOnce()
      if (fault !== null) return fault
      if (isReadOnly) return writability.failed(new ReadOnlyServerError())
      writability.worked()
      return null
    },
  }
}

/** What one look at the server found; `fault` is null when it is fit for reads. */
type Inspection = { fault: string | null; isReadOnly: boolean }

async function readServer(postgres: Postgres): Promise<{ version: string; isReadOnly: boolean }> {
  const { rows } = await postgres.query<{ version: string; is_read_only: boolean }>(
    `select current_setting('server_version') as version,
       current_setting('transaction_read_only') = 'on' as is_read_only`,
  )
  const { version, is_read_only: isReadOnly } = rows[0]!
  return { version, isReadOnly }
}

/** @returns null without a table, and for a role that an earlier release made */
async function readNewestMigration(postgres: Postgres): Promise<string | null> {
  try {
    const { rows } = await postgres.query<{ name: string | null }>(
      'select max(name) as name from schema_migrations',
    )
    return rows[0]!.name
  } catch (error) {
    const { undefinedTable, insufficientPrivilege } = sqlStates
    if ([undefinedTable, insufficientPrivilege].some((state) => isSqlState(error, state))) {
      return null
    }
    throw error
  }
}
