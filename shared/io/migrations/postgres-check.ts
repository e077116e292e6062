/** Whether Postgres is what a process of this release needs, for `/readyz`. */
import { describeOldServer } from '#shared/core/base/server-versions.ts'
import type { ReadyCheck } from '#shared/io/http/internal-server.ts'
import {
  isSqlState,
  type Postgres,
  type Queryable,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import { ReadOnlyServerError } from '#shared/io/postgres/postgres-session.ts'
import {
  describeSetting,
  describeUnfit,
  type ServerFacts,
  serverFactsSql,
} from '#shared/io/postgres/session-settings.ts'
import {
  createFaultReporter,
  describeConnectFault,
  UnfitServerError,
} from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { SchemaVersions } from './schema-versions.ts'

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
    if (fault !== null) return { fault, readOnly: null }
    try {
      const { server, readOnly } = await inspectServer(postgres)
      const unfit =
        server ?? (await schemas.compare('postgres', await readNewestMigration(postgres)))
      if (unfit !== null) return { fault: fitness.failed(new UnfitServerError(unfit)), readOnly }
      fitness.worked()
      return { fault: null, readOnly }
    } catch (error) {
      return { fault: describeConnectFault(error), readOnly: null }
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
      const { fault, readOnly } = await inspectOnce()
      if (readOnly !== null) return writability.failed(readOnly)
      if (fault === null) writability.worked()
      return fault
    },
  }
}

/** What one look at the server found: what is wrong for reads, and for writes beside that. */
type Inspection = { fault: string | null; readOnly: UnfitServerError | null }

type Server = {
  /** Why the server is not what this release needs, as the end of a sentence. */
  server: string | null
  /** Why it takes no writes. */
  readOnly: UnfitServerError | null
}

/** Looks at the version and the settings of a server. */
export async function inspectServer(postgres: Queryable): Promise<Server> {
  const { rows } = await postgres.query<ServerFacts & ReadOnlyFacts & { version: string }>(
    `select current_setting('server_version') as version, pg_is_in_recovery() as is_standby,
       current_setting('transaction_read_only') as read_only, ${serverFactsSql}`,
  )
  const [facts] = rows
  const server = describeOldServer('Postgres', facts!.version) ?? describeUnfit(facts!)
  return { server, readOnly: toReadOnlyError(facts!) }
}

type ReadOnlyFacts = { is_standby: boolean; read_only: 'on' | 'off' }

function toReadOnlyError(facts: ServerFacts & ReadOnlyFacts): UnfitServerError | null {
  if (facts.is_standby) return new ReadOnlyServerError()
  if (facts.read_only === 'off') return null
  // Whoever set it may protect a full disk or a replaced primary: it is theirs to take back.
  const setting = ['default_transaction_read_only', 'on', 'off'] as const
  return new UnfitServerError(describeSetting(facts, setting))
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
