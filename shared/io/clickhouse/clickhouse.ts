/**
 * The connection to ClickHouse: one HTTP client with kept-alive sockets, bounded times and every
 * setting that matters pinned, so that a server's own defaults never change what an insert means.
 * It also tells a refusal of data from a failure of the server, by ClickHouse's error codes.
 */
import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { Readable } from 'node:stream'
import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client'
import type { Action } from '#shared/core/scoring/score.ts'
import { describeConnectFault, type FaultReporter } from '#shared/io/process/connect-faults.ts'

export type Clickhouse = ClickHouseClient

/** The database of a URL without a path. */
export const defaultDatabase = 'device_intelligence'

export type ClickhouseOptions = {
  /** Shown in ClickHouse's query log. */
  name: string
  /** Overrides the URL's database: what creates the database connects to `default`. */
  database?: string
  /** How long one request may take. */
  requestTimeoutMs?: number
  connectionsMax?: number
}

/** The database that a CLICKHOUSE_URL names in its path. */
export function databaseOf(url: string): string {
  const path = decodeURIComponent(new URL(url).pathname).replace(/^\/+|\/+$/g, '')
  return path === '' ? defaultDatabase : path
}

/** Servers close an idle connection after 10 s (3 s before 23.11): ours must be the first to. */
const idleSocketMs = 2_500

/**
 * Sockets are kept by Node's agent. The client's own account of idle ones loses its timer when a
 * request is given up before it has a socket, and 2.5 s later ends whatever runs on that socket.
 */
function createAgent(protocol: string, maxSockets: number): Agent {
  const options = { keepAlive: true, maxSockets, timeout: idleSocketMs }
  return protocol === 'https:' ? new TlsAgent(options) : new Agent(options)
}

/**
 * Makes a client; it connects with its first query.
 * @param url `http(s)://user:password@host:port/database`
 */
export function createClickhouse(url: string, options: ClickhouseOptions): Clickhouse {
  const { username, password, origin, protocol } = new URL(url)
  const requestTimeoutMs = options.requestTimeoutMs ?? 30_000
  return createClient({
    url: origin,
    username: username === '' ? 'default' : decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: options.database ?? databaseOf(url),
    application: options.name,
    request_timeout: requestTimeoutMs,
    http_agent: createAgent(protocol, options.connectionsMax ?? 16),
    // Its own log would print what was sent; whatever fails is thrown.
    log: { level: ClickHouseLogLevel.OFF },
    keep_alive: { enabled: true, idle_socket_ttl: 0 },
    clickhouse_settings: {
      // An answer means the rows are in the table and in everything its views feed.
      async_insert: 0,
      wait_for_async_insert: 1,
      materialized_views_ignore_errors: 0,
      // Rows carry their identity, blocks do not: nothing is dropped for looking alike.
      insert_deduplicate: 0,
      // What nobody waits for any more must not go on beside its next try.
      max_execution_time: Math.ceil(requestTimeoutMs / 1_000),
      cancel_http_readonly_queries_on_client_close: 1,
      date_time_input_format: 'basic',
      date_time_output_format: 'simple',
      output_format_json_quote_64bit_integers: 0,
      // Threads that share the reading or writing of a few rows cost more than the rows.
      input_format_parallel_parsing: 0,
      output_format_parallel_formatting: 0,
    },
  })
}

/** Compiling a query takes up to 100 ms, when it is asked for the third time, and gains nothing. */
export const uncompiled = { compile_expressions: 0, compile_aggregate_expressions: 0 } as const

/**
 * How to ask for little: dividing it among threads costs more than it saves, the older analyzer
 * plans these queries in two thirds of the time, and planning is half of what they cost.
 */
export const smallQuery = {
  max_threads: 1,
  allow_experimental_analyzer: 0,
  ...uncompiled,
} as const

const checkMaxMs = 1_000

/**
 * For `/readyz`: null when ClickHouse answers and the database is there, else what is missing.
 * @param reporter says in the log why it fails
 */
export async function checkClickhouse(
  clickhouse: Clickhouse,
  reporter?: FaultReporter,
): Promise<string | null> {
  try {
    // A query names the database, a ping does not.
    const question = { query: 'select 1', format: 'TabSeparated' } as const
    // Given up when nobody waits for it any more: it must not keep a connection from others.
    const abort_signal = AbortSignal.timeout(checkMaxMs)
    await (await clickhouse.query({ ...question, abort_signal })).text()
    reporter?.worked()
    return null
  } catch (error) {
    return reporter?.failed(error) ?? describeConnectFault(error)
  }
}

/** Inserts rows as JSON; none is no request. */
export async function insertRows(
  clickhouse: Clickhouse,
  table: string,
  rows: readonly Record<string, unknown>[],
): Promise<void> {
  if (rows.length > 0) await clickhouse.insert({ table, values: rows, format: 'JSONEachRow' })
}

/** An instant, in ms since 1970, as a value of a `DateTime64(3)` in a row of JSON. */
export const toInstant = (ms: number): string =>
  new Date(ms).toISOString().slice(0, -1).replace('T', ' ')

/** Actions as the Enum8 of every table that has them. */
export const actionValues: Record<Action, number> = { ALLOW: 0, REVIEW: 1, BLOCK: 2 }

/** A name as it is safe within a statement, whatever is in it. */
export const quoteName = (name: string): string =>
  `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``

/**
 * Inserts rows that are in RowBinary. It resolves when they are in the table and in all that its
 * views feed.
 * @param into the table and its columns: `events (id, at)`
 * @param rows at once, or in pieces that are made as they are sent; what making them throws is what
 *   this rejects with
 */
export async function insertRowBinary(
  clickhouse: Clickhouse,
  into: string,
  rows: Uint8Array | Iterable<Uint8Array>,
  settings: ClickHouseSettings = {},
): Promise<void> {
  const pieces = rows instanceof Uint8Array ? [rows] : rows
  let defect: { error: unknown } | null = null
  const make = function* () {
    try {
      yield* pieces
    } catch (error) {
      defect = { error }
      throw error
    }
  }
  try {
    const { stream } = await clickhouse.exec({
      query: `insert into ${into} format RowBinary`,
      values: Readable.from(make(), { objectMode: false }),
      clickhouse_settings: settings,
    })
    // An insert answers nothing, but its socket is free again only once that has been read.
    for await (const _ of stream);
  } catch (error) {
    const { error: cause } = (defect as { error: unknown } | null) ?? { error }
    throw cause
  }
}

/**
 * `data` depends on what was sent alone; `suspect` probably does, but may be the server's state;
 * `memory` may depend on how much was sent at once.
 */
export type Refusal = 'data' | 'suspect' | 'memory'

/**
 * Whether ClickHouse refused what it was sent, so that sending it again can only fail again.
 * @returns null for every other failure: the server's or the network's, worth a retry
 */
export function toRefusal(error: unknown): Refusal | null {
  if (!(error instanceof ClickHouseError)) return null
  const code = Number(error.code)
  if (dataCodes.has(code)) return 'data'
  if (code === memoryLimitExceeded) return 'memory'
  return suspectCodes.has(code) ? 'suspect' : null
}

/** Whether a query was ended for its `max_execution_time`. */
export function isTimeout(error: unknown): boolean {
  return error instanceof ClickHouseError && Number(error.code) === timeoutExceeded
}

/** Whether a query was refused for its `max_rows_to_read`, before it read any. */
export function isTooMuchToRead(error: unknown): boolean {
  return error instanceof ClickHouseError && Number(error.code) === tooManyRows
}

/** A failure for a log: ClickHouse's messages quote the data, so only the code is told. */
export function describeFailure(error: unknown): { code?: string; type?: string } | Error {
  if (!(error instanceof ClickHouseError)) return error as Error
  return { code: error.code, type: error.type ?? 'UNKNOWN' }
}

/** The same as an error's cause. */
export function toLoggable(error: unknown): Error {
  const failure = describeFailure(error)
  if (failure instanceof Error) return failure
  return new Error(`ClickHouse answered ${failure.type} (${failure.code})`)
}

const timeoutExceeded = 159
const tooManyRows = 158
const memoryLimitExceeded = 241
// Names and numbers from ClickHouse's ErrorCodes.cpp.
const dataCodes = new Set([
  6, // CANNOT_PARSE_TEXT
  23, // CANNOT_READ_FROM_ISTREAM
  25, // CANNOT_PARSE_ESCAPE_SEQUENCE
  26, // CANNOT_PARSE_QUOTED_STRING
  27, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  32, // ATTEMPT_TO_READ_AFTER_EOF
  33, // CANNOT_READ_ALL_DATA
  38, // CANNOT_PARSE_DATE
  41, // CANNOT_PARSE_DATETIME
  53, // TYPE_MISMATCH
  69, // ARGUMENT_OUT_OF_BOUND
  70, // CANNOT_CONVERT_TYPE
  72, // CANNOT_PARSE_NUMBER
  117, // INCORRECT_DATA
  128, // TOO_LARGE_ARRAY_SIZE
  130, // CANNOT_READ_ARRAY_FROM_TEXT
  131, // TOO_LARGE_STRING_SIZE
  190, // SIZES_OF_ARRAYS_DONT_MATCH
  321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
  349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
  467, // CANNOT_PARSE_BOOL
  632, // UNEXPECTED_DATA_AFTER_PARSED_VALUE
  645, // NUMBER_OF_DIMENSIONS_MISMATCHED
])
const suspectCodes = new Set([
  36, // BAD_ARGUMENTS
  43, // ILLEGAL_TYPE_OF_ARGUMENT
  44, // ILLEGAL_COLUMN
  48, // NOT_IMPLEMENTED
  49, // LOGICAL_ERROR
  50, // UNKNOWN_TYPE
  306, // TOO_DEEP_RECURSION
  386, // NO_COMMON_TYPE
])
