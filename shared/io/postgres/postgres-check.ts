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
  const createCheck = (needsWrites: boolean): ReadyCheck => {
    const reporter = createFaultReporter('Postgres', log)
    return async () => {
      const fault = await postgres.checkReady()
      if (fault !== null) return fault
      try {
        const unfit = await findUnfit(postgres, schemas, needsWrites)
        if (unfit === null) reporter.worked()
        else reporter.failed(new UnfitServerError(unfit))
        return unfit
      } catch (error) {
        return describeConnectFault(error)
      }
    }
  }
  return { reads: createCheck(false), writes: createCheck(true) }
}

async function findUnfit(
  postgres: Postgres,
  schemas: SchemaVersions,
  needsWrites: boolean,
): Promise<string | null> {
  const { rows } = await postgres.query<{ version: string; is_read_only: boolean }>(
    `select current_setting('server_version') as version,
       current_setting('transaction_read_only') = 'on' as is_read_only`,
  )
  const { version, is_read_only: isReadOnly } = rows[0]!
  const old = describeOldServer('Postgres', version)
  if (old !== null) return old
  const older = await schemas.compare('postgres', await readNewestMigration(postgres))
  if (older !== null) return older
  return needsWrites && isReadOnly ? new ReadOnlyServerError().message : null
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
