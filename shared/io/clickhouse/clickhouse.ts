/**
 * The connection to ClickHouse: an HTTP client with persistent connections, time limits and pinned
 * settings, so that a server's defaults never change what an insert means. It also distinguishes
 * refused data from failures of the server, by ClickHouse's error codes.
 */
import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { Readable } from 'node:stream'
import {
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client'
import { pinnedClickhouseSettings } from '#shared/core/base/clickhouse-settings.ts'
import { toAllDatabase } from '#shared/core/base/shards.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import { describeConnectFault, type FaultReporter } from '#shared/io/process/connect-faults.ts'
import { withKnownErrors } from './known-errors.ts'
import { type ClickhouseRequests, joinReplicas } from './replicas.ts'

/** A connection to one node. On a shard it has the shard's own rows. */
export type ClickhouseNode = ClickhouseRequests

/** A shard's own tables, on one of its replicas. */
export type ClickhouseShard = ClickhouseNode & {
  /** Each of its servers; one where nothing is copied. */
  readonly replicas: readonly ClickhouseNode[]
}

/** A connection to all rows, wherever they lie. */
export type Clickhouse = ClickhouseNode & {
  /** None where there is one node. */
  readonly shards: readonly ClickhouseShard[]
}

/** The URLs of each shard's replicas, in the order of the shards. */
export type ShardUrls = readonly (readonly string[])[]

/** The database of a URL without a path. */
export const defaultDatabase = 'device_intelligence'

type ClickhouseOptions = {
  /** For ClickHouse's query log. */
  name: string
  /** Overrides the URL's database: a client that creates it connects to `default`. */
  database?: string
  /** How long one request may take. */
  requestTimeoutMs?: number
  connectionsMax?: number
  /** Without any there is one node. */
  shardUrls?: ShardUrls
}

/** The database that a CLICKHOUSE_URL names in its path. */
export function databaseOf(url: string): string {
  const path = decodeURIComponent(new URL(url).pathname).replace(/^\/+|\/+$/g, '')
  return path === '' ? defaultDatabase : path
}

/** Below the idle limit of servers (10 s, or 3 s before 23.11), so that the client closes first. */
const idleSocketMs = 2_500

/**
 * Node's agent pools the sockets. The client's own pool has a defect: when a request is aborted
 * before it has a socket, its idle timer later ends a running request.
 */
function createAgent(protocol: string, maxSockets: number): Agent {
  const options = { keepAlive: true, maxSockets, timeout: idleSocketMs }
  return protocol === 'https:' ? new TlsAgent(options) : new Agent(options)
}

/** What shards, tables of all shards and replicas need in addition. */
const clusterSettings = (requestTimeoutMs: number): ClickHouseSettings => ({
  // A response means that every shard has its rows.
  distributed_foreground_insert: 1,
  // A subquery over all shards is run once, and its result is sent to each.
  distributed_product_mode: 'global',
  // A response means that the majority of the replicas that Keeper knows has the rows: of two,
  // both.
  insert_quorum: 'auto',
  // One after the other would refuse what is inserted at the same time, as views of shards do.
  insert_quorum_parallel: 1,
  // Without it, a server would wait on beside the retry.
  insert_quorum_timeout: requestTimeoutMs,
})

/**
 * Creates a client. The first query connects.
 * @param url `http(s)://user:password@host:port/database`; of shards, of a server that queries the
 *   others, which a replica of its shard replaces when it does not answer
 */
export function createClickhouse(url: string, options: ClickhouseOptions): Clickhouse {
  const { shardUrls = [] } = options
  if (shardUrls.length === 0) return Object.assign(createNode(url, options), { shards: [] })
  const shards = shardUrls.map((urls) => createShard(urls, options))
  const { origin } = new URL(url)
  const own = shardUrls.find((urls) => urls.some((one) => new URL(one).origin === origin)) ?? [url]
  const database = toAllDatabase(databaseOf(url))
  const all = createShard(own, { ...options, database })
  const close = async () => {
    await Promise.all([all, ...shards].map((shard) => shard.close()))
  }
  return { ...all, shards, close }
}

function createShard(urls: readonly string[], options: ClickhouseOptions): ClickhouseShard {
  const replicas = urls.map((url) => createNode(url, options))
  return { ...joinReplicas(replicas), replicas }
}

/** The client names each setting and its type; a map is text. */
const pinnedSettings = pinnedClickhouseSettings as ClickHouseSettings

function createNode(url: string, options: ClickhouseOptions): ClickhouseNode {
  const { username, password, origin, protocol } = new URL(url)
  const requestTimeoutMs = options.requestTimeoutMs ?? 30_000
  const client = createClient({
    url: origin,
    username: username === '' ? 'default' : decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: options.database ?? databaseOf(url),
    application: options.name,
    request_timeout: requestTimeoutMs,
    http_agent: createAgent(protocol, options.connectionsMax ?? 16),
    // The client's log would print data; failures are thrown.
    log: { level: ClickHouseLogLevel.OFF },
    keep_alive: { enabled: true, idle_socket_ttl: 0 },
    clickhouse_settings: {
      ...pinnedSettings,
      // An abandoned query must not run beside its retry.
      max_execution_time: Math.ceil(requestTimeoutMs / 1_000),
      cancel_http_readonly_queries_on_client_close: 1,
      // For a few rows, threads cost more than they save.
      input_format_parallel_parsing: 0,
      output_format_parallel_formatting: 0,
      ...(options.shardUrls?.length ? clusterSettings(requestTimeoutMs) : {}),
    },
  })
  return withKnownErrors(client)
}

/** Compiling a query at its third run takes up to 100 ms and gains nothing here. */
export const uncompiled = { compile_expressions: 0, compile_aggregate_expressions: 0 } as const

/**
 * Settings of queries that read little: one thread, and the older analyzer, which plans them in two
 * thirds of the time. Planning is half of their cost.
 */
export const smallQuery = {
  max_threads: 1,
  allow_experimental_analyzer: 0,
  ...uncompiled,
} as const

/**
 * The settings of a small query of all shards: the older analyzer takes twice as long to send one
 * to others.
 */
export const smallQueryOf = ({ shards }: Clickhouse): ClickHouseSettings =>
  shards.length === 0 ? smallQuery : { max_threads: 1, ...uncompiled }

/** Every node with rows of its own: the replicas of a shard are one. */
export const nodesOf = (clickhouse: Clickhouse): readonly ClickhouseNode[] =>
  clickhouse.shards.length === 0 ? [clickhouse] : clickhouse.shards

/** Every server, with its name where there are several: `shard 2`, `replica 1 of shard 2`. */
export function serversOf(clickhouse: Clickhouse): { server: ClickhouseNode; name: string }[] {
  if (clickhouse.shards.length === 0) return [{ server: clickhouse, name: '' }]
  return clickhouse.shards.flatMap(({ replicas }, shard) =>
    replicas.map((server, replica) => ({
      server,
      name: `${replicas.length === 1 ? '' : `replica ${replica + 1} of `}shard ${shard + 1}`,
    })),
  )
}

/** How long a query of a readiness check may take: it must not occupy a connection for longer. */
export const checkMaxMs = 1_000

/**
 * For `/readyz`.
 * @param reporter logs why it fails
 * @returns null when ClickHouse answers and the database exists, else the reason; of several
 *   servers, of the first that is missing
 */
export async function checkClickhouse(
  clickhouse: Clickhouse,
  reporter?: FaultReporter,
): Promise<string | null> {
  const servers = serversOf(clickhouse)
  const faults = await Promise.all(servers.map(({ server }) => checkServer(server)))
  const at = faults.findIndex((fault) => fault !== null)
  if (at === -1) return null
  const { error } = faults[at]!
  return toServerFault(servers[at]!, reporter?.failed(error) ?? describeConnectFault(error))
}

/** @returns the reason, with the name of the server where there are several */
export const toServerFault = ({ name }: { name: string }, why: string): string =>
  name === '' ? why : `${name} ${why}`

async function checkServer(node: ClickhouseNode): Promise<{ error: unknown } | null> {
  try {
    // A query names the database, a ping does not.
    const check = { query: 'select 1', format: 'TabSeparated' } as const
    const abort_signal = AbortSignal.timeout(checkMaxMs)
    await (await node.query({ ...check, abort_signal })).text()
    return null
  } catch (error) {
    return { error }
  }
}

/** Inserts rows as JSON. Without rows it sends no request. */
export async function insertRows(
  clickhouse: ClickhouseNode,
  table: string,
  rows: readonly Record<string, unknown>[],
): Promise<void> {
  if (rows.length > 0) await clickhouse.insert({ table, values: rows, format: 'JSONEachRow' })
}

/** @returns an instant, in ms since 1970, as JSON of a `DateTime64(3)` */
export const toInstant = (ms: number): string =>
  new Date(ms).toISOString().slice(0, -1).replace('T', ' ')

/** The Enum8 values of actions, in every table. */
export const actionValues: Record<Action, number> = { ALLOW: 0, REVIEW: 1, BLOCK: 2 }

/** Quotes an identifier. */
export const quoteName = (name: string): string =>
  `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``

/**
 * Inserts rows in RowBinary. Resolves when they are in the table and in the targets of its views.
 * @param into the table and its columns: `events (id, at)`
 * @param rows all rows, or pieces that are encoded while they are sent
 * @throws the error of ClickHouse, or of the iteration
 */
export async function insertRowBinary(
  clickhouse: ClickhouseNode,
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
    // The response is empty, but the socket is free only after it was read.
    for await (const _ of stream);
  } catch (error) {
    const { error: cause } = (defect as { error: unknown } | null) ?? { error }
    throw cause
  }
}

/**
 * Why ClickHouse refused an insert. `data`: the rows are at fault; `suspect`: probably the rows,
 * but possibly the server; `memory`: possibly the amount.
 */
export type Refusal = 'data' | 'suspect' | 'memory'

/**
 * Whether ClickHouse refused the rows, so that a retry would fail again.
 * @returns null for failures of the server or the network, which are worth a retry
 */
export function toRefusal(error: unknown): Refusal | null {
  if (!(error instanceof ClickHouseError)) return null
  const code = Number(error.code)
  if (dataCodes.has(code)) return 'data'
  if (code === memoryLimitExceeded) return 'memory'
  return suspectCodes.has(code) ? 'suspect' : null
}

/** Whether a query exceeded its `max_execution_time`. */
export function isTimeout(error: unknown): boolean {
  return error instanceof ClickHouseError && Number(error.code) === timeoutExceeded
}

/** Whether a query was refused because of its `max_rows_to_read`, before it read any. */
export function isTooMuchToRead(error: unknown): boolean {
  return error instanceof ClickHouseError && Number(error.code) === tooManyRows
}

/** @returns the error, or one without ClickHouse's message, which quotes data; for `cause` */
export function toLoggable(error: unknown): Error {
  if (!(error instanceof ClickHouseError)) return error as Error
  return new Error(`ClickHouse answered ${error.type ?? 'UNKNOWN'} (${error.code})`)
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
