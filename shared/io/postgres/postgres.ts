/**
 * Access to PostgreSQL: a pool per process, transactions, and errors classified by SQLSTATE. An
 * outage is always a PostgresUnavailableError: the HTTP server responds with 503 and a consumer
 * retries. A failed connection never ends the process, and the pool reconnects by itself.
 */
import pg from 'pg'
import { retryAfterSeconds } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  createFaultReporter,
  describeConnectFault,
  type FaultReporter,
} from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { parsePostgresUrl } from '#shared/io/process/server-addresses.ts'
import { observePool } from './pool-metrics.ts'
import { type ConnectionMode, prepareConnection } from './postgres-session.ts'
import { pinnedSettings, type SessionSettings } from './session-settings.ts'

/** One statement. With a `name` it is prepared once per connection, unless there is a pooler. */
export type Sql = { text: string; values?: readonly unknown[]; name?: string }

export type Row = Record<string, unknown>
export type Rows<R> = { rows: R[]; rowCount: number }

/** The pool or a transaction: stores work with either. */
export type Queryable = {
  /** @throws PostgresUnavailableError, or pg's DatabaseError with its SQLSTATE in `code` */
  query: <R extends object = Row>(
    sql: string | Sql,
    values?: readonly unknown[],
  ) => Promise<Rows<R>>
}

/**
 * One connection of the pool. Behind a pooler only the statements of one transaction share a server
 * session, so nothing may depend on a longer session.
 */
export type Session = Queryable & {
  transaction: <T>(work: (tx: Queryable) => Promise<T>) => Promise<T>
}

export type Postgres = Queryable & {
  /**
   * Runs `work` in a transaction; an error rolls it back. It is repeated after a serialization
   * failure or a deadlock, so it must have no effect outside Postgres. When the connection is lost
   * during the commit the outcome is unknown, and the error is a PostgresUnavailableError: what
   * must not happen twice needs a unique key.
   */
  transaction: <T>(work: (tx: Queryable) => Promise<T>) => Promise<T>
  /** Runs `work` on one connection, which is discarded afterwards if it failed. */
  withSession: <T>(work: (session: Session) => Promise<T>) => Promise<T>
  /** For `/readyz`: null when a round trip works, else the reason. */
  checkReady: () => Promise<string | null>
  /** Waits until all connections are free, then closes them. */
  close: () => Promise<void>
}

export type PostgresOptions = {
  /** The pool, for `pg_stat_activity` and metrics: of one process or thread each has its own. */
  role: string
  /** What the name of its connections in `pg_stat_activity` ends with. */
  nameEnd?: string
  log: Log
  /** Logs connection failures; shared by the pools of one process. */
  reporter?: FaultReporter
  metrics?: Metrics
  /** Connections at most; 10 by default. */
  connectionsMax?: number
  /** The server ends a statement after this long; 10 s by default, 0 is never. */
  statementTimeoutMs?: number
  /** The server stops waiting for a lock after this long; 5 s by default, 0 is never. */
  lockTimeoutMs?: number
  /** How long to wait for a free or a new connection; 3 s by default. */
  connectTimeoutMs?: number
  /** Further settings of every session, for plans that must not depend on statistics. */
  settings?: SessionSettings
  /** `false` for a database that is not the service's, from which that one is created. */
  own?: boolean
}

/** Postgres cannot be reached, is shutting down or is full. Clients get a 503. */
export class PostgresUnavailableError extends Problem {
  constructor(cause: unknown) {
    super('unavailable', 'The database cannot answer at the moment.', { retryAfterSeconds, cause })
    this.name = 'PostgresUnavailableError'
  }
}

/** SQLSTATEs that this code uses. */
export const sqlStates = {
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  checkViolation: '23514',
  lockNotAvailable: '55P03',
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  duplicateDatabase: '42P04',
  invalidCatalogName: '3D000',
  invalidParameterValue: '22023',
  undefinedTable: '42P01',
  insufficientPrivilege: '42501',
  queryCanceled: '57014',
} as const

/**
 * Whether an error is the server's, with this SQLSTATE.
 * @param constraint the violated constraint, when it matters
 */
export function isSqlState(error: unknown, state: string, constraint?: string): boolean {
  const found = error instanceof PostgresUnavailableError ? error.cause : error
  return (
    found instanceof pg.DatabaseError &&
    found.code === state &&
    (constraint === undefined || found.constraint === constraint)
  )
}

/** Whether a retry may succeed: the server is away, or another transaction was in the way. */
export const isPassing = (error: unknown): boolean => error instanceof PostgresUnavailableError

/** Whether another transaction was in the way: the connection is as good as before. */
const isOfOthers = (error: unknown): boolean =>
  isConflict(error) || isSqlState(error, sqlStates.lockNotAvailable)

/** Whether the same statements can succeed at once. */
const isConflict = (error: unknown): boolean =>
  isSqlState(error, sqlStates.serializationFailure) || isSqlState(error, sqlStates.deadlockDetected)

/** Classes of SQLSTATEs, and single ones, that mean a temporary failure. */
const unavailableClasses = new Set(['08', '28', '53', '58'])
const unavailableStates = new Set([
  ...['57P01', '57P02', '57P03', '57P05', '57014', '25006', '25P03'],
  ...[sqlStates.serializationFailure, sqlStates.deadlockDetected, sqlStates.lockNotAvailable],
])

/** Errors of the server keep their SQLSTATE, an outage in its cause; all others are outages. */
function toPostgresError(error: unknown): unknown {
  if (error instanceof PostgresUnavailableError) return error
  // A value that cannot be sent is a defect, not an outage.
  if (error instanceof TypeError || error instanceof RangeError) return error
  if (!(error instanceof pg.DatabaseError)) return new PostgresUnavailableError(error)
  const state = error.code ?? ''
  const unavailable = unavailableClasses.has(state.slice(0, 2)) || unavailableStates.has(state)
  return unavailable ? new PostgresUnavailableError(error) : error
}

/** An instant, in ms since 1970, as a value of a `timestamptz`. */
export const toTime = (ms: number): string => new Date(ms).toISOString()

/** Of statements and transactions that lost to others. */
const triesMax = 5

/** How long readiness reports a full disk after a failed write: reads still succeed. */
const fullDiskMs = 3_000

function isOfFullDisk(error: unknown): boolean {
  const { cause = error } = error as { cause?: unknown }
  return cause instanceof pg.DatabaseError && (cause.code === '53100' || cause.code === '58030')
}

/** Of pg's pool, when no connection became free in time. */
const allBusyMessage = 'timeout exceeded when trying to connect'

/**
 * Creates a pool. The first query connects. Of several hosts it uses the one that takes writes, and
 * looks for another when a connection to it fails.
 * @param url `postgres://user:password@host:port,host:port/database`
 */
export function createPostgres(url: string, options: PostgresOptions): Postgres {
  const { log } = options
  const settings = toSettings(options)
  const modes = new WeakMap<pg.ClientBase, ConnectionMode>()
  const { urls, readWrite } = parsePostgresUrl(url)
  let [present = url] = urls
  const pool = new pg.Pool({
    ...toPoolConfig(options),
    // Every connection is to the present host.
    Client: class extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super({ ...config, connectionString: present })
      }
    },
    onConnect: async (client: pg.ClientBase) => {
      modes.set(
        client,
        await prepareConnection(client, { settings, readWrite, own: options.own ?? true }),
      )
    },
  })
  // The next query replaces a broken idle connection. Without a listener the event ends the
  // process.
  pool.on('error', (error) => log.warn({ err: error }, 'an idle connection to Postgres was lost'))
  if (options.metrics !== undefined) observePool(options.role, pool, options.metrics)

  let diskFullAtMs = Number.NEGATIVE_INFINITY
  const reporter = options.reporter ?? createFaultReporter('Postgres', log)
  const openClient = async (): Promise<pg.PoolClient> => {
    for (let left = urls.length - 1; ; left--) {
      const tried = present
      try {
        const client = await pool.connect()
        reporter.worked()
        return client
      } catch (error) {
        // A pool whose connections are all busy is no failure of the server.
        const isBusy = (error as Error).message === allBusyMessage
        const failure = toPostgresError(error)
        if (!isBusy && failure instanceof PostgresUnavailableError) {
          // Another caller may have moved on meanwhile.
          if (present === tried) present = urls[(urls.indexOf(tried) + 1) % urls.length] ?? tried
          if (left > 0) continue
        }
        if (!isBusy) reporter.failed(error)
        throw failure
      }
    }
  }
  const withSession = async <T>(work: (session: Session) => Promise<T>): Promise<T> => {
    const client = await openClient()
    // Between two queries there is no other listener, and without one the event ends the process.
    let broken: Error | undefined
    const onError = (error: Error) => {
      broken = error
    }
    client.on('error', onError)
    const session = toSession(client, modes.get(client)!)
    try {
      return await work(session)
    } catch (error) {
      if (isOfFullDisk(error)) diskFullAtMs = performance.now()
      throw error
    } finally {
      client.removeListener('error', onError)
      client.release(broken ?? session.dirty())
    }
  }
  const repeated = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        if (!isConflict(error) || attempt === triesMax) throw error
        // Let the other transaction proceed first.
        await new Promise((resolve) => setTimeout(resolve, attempt * 10))
      }
    }
  }
  return {
    query: (sql, values) => repeated(() => withSession((session) => session.query(sql, values))),
    transaction: (work) => repeated(() => withSession((session) => session.transaction(work))),
    withSession,
    checkReady: async () => {
      try {
        await withSession((session) => session.query('select 1'))
      } catch (error) {
        return describeConnectFault(error)
      }
      const full = performance.now() - diskFullAtMs < fullDiskMs
      return full ? 'has a full disk' : null
    },
    close: () => pool.end(),
  }
}

function toSession(
  client: pg.PoolClient,
  mode: ConnectionMode,
): Session & { dirty: () => boolean } {
  let dirty = false
  const run: Queryable['query'] = async <R extends object = Row>(
    sql: string | Sql,
    values?: readonly unknown[],
  ): Promise<Rows<R>> => {
    const statement = typeof sql === 'string' ? { text: sql, values: values ?? [] } : sql
    const { name, text } = statement
    try {
      const result = await client.query<R & pg.QueryResultRow>({
        text,
        values: [...(statement.values ?? [])],
        ...(name === undefined || !mode.named ? {} : { name }),
      })
      return { rows: result.rows, rowCount: result.rowCount ?? 0 }
    } catch (error) {
      const failure = toPostgresError(error)
      // Never return a connection in an unknown state to the pool, even if the error is caught.
      if (isPassing(failure) && !isOfOthers(failure)) dirty = true
      throw failure
    }
  }
  const transaction = async <T>(work: (tx: Queryable) => Promise<T>): Promise<T> => {
    await run(mode.begin)
    try {
      const result = await work({ query: run })
      await run('commit')
      return result
    } catch (error) {
      await run('rollback').catch(() => {
        dirty = true
      })
      throw error
    }
  }
  const query: Queryable['query'] = (sql, values) =>
    mode.wrap ? transaction((tx) => tx.query(sql, values)) : run(sql, values)
  return { query, transaction, dirty: () => dirty }
}

const int8Oid = 20
const statementTimeoutDefaultMs = 10_000
/** No transaction waits for anything that takes longer; guarantees count on half a minute. */
const transactionIdleMsMax = 15_000

function toPoolConfig(options: PostgresOptions): pg.PoolConfig {
  const statementTimeoutMs = options.statementTimeoutMs ?? statementTimeoutDefaultMs
  return {
    application_name: `device-intelligence ${options.role}${options.nameEnd ?? ''}`,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 3_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Only the client detects a server that accepts a statement and then is silent.
    ...(statementTimeoutMs === 0 ? {} : { query_timeout: statementTimeoutMs + 2_000 }),
    types: { getTypeParser: toTypeParser as typeof pg.types.getTypeParser },
  }
}

/** @returns the settings of a pool's sessions */
export const toSettings = (
  options: Pick<PostgresOptions, 'statementTimeoutMs' | 'lockTimeoutMs' | 'settings'>,
): SessionSettings => ({
  ...pinnedSettings,
  statement_timeout: `${options.statementTimeoutMs ?? statementTimeoutDefaultMs}`,
  lock_timeout: `${options.lockTimeoutMs ?? 5_000}`,
  // The server ends a transaction of a process that hangs, and others get what it had locked.
  idle_in_transaction_session_timeout: `${transactionIdleMsMax}`,
  ...options.settings,
})

/** Parses bigint as a number. @throws RangeError above 2^53 */
function toTypeParser(oid: number, format?: 'text' | 'binary'): unknown {
  if (oid !== int8Oid || format === 'binary') return pg.types.getTypeParser(oid, format as 'text')
  return (text: string) => {
    const value = Number(text)
    if (!Number.isSafeInteger(value)) throw new RangeError('a bigint is above 2^53')
    return value
  }
}

/**
 * Repeats `work`, with growing pauses up to 2 s, while Postgres is away.
 * @param work safe to repeat
 * @throws every other error of `work`, and the last failure once `signal` has aborted
 */
export async function untilPostgresAnswers<T>(
  work: () => Promise<T>,
  { log, signal }: { log: Log; signal?: AbortSignal },
): Promise<T> {
  for (let pauseMs = 50, logged = false; ; pauseMs = Math.min(2_000, pauseMs * 2)) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof PostgresUnavailableError) || signal?.aborted) throw error
      if (!logged) log.warn({ err: error.cause }, 'Postgres does not answer; waiting for it')
      logged = true
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
