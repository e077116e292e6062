// The engine behind the analysts' proxy: runs a query as the engine's user `analyst` for one
// tenant, buffers the whole response, and knows when the engine has stopped working on a query,
// which can be long after the client has left.

import { randomUUID } from 'node:crypto'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EngineFunction, type RefusedNames, toRefusedNames } from './analyst-functions.ts'
import type { ParsedQuery, Refusal } from './analyst-request.ts'
import { checkStatement, parseTokens, type Token, toTokensStatement } from './analyst-statement.ts'
import { tenantHeader, toAnalystPassword } from './server-config.ts'

export type AnalystQuery = {
  tenantId: string
  parsed: ParsedQuery
  /** Headers of the client that the engine may see. */
  headers: Record<string, string>
}

export type Answer = { status: number; headers: Record<string, string>; body: Buffer }

export type AnalystEngine = {
  /** Rejects a query for its syntax, or for a name that analysts cannot use; else null. */
  judge: (query: AnalystQuery) => Promise<Refusal | null>
  /**
   * Runs a query.
   * @returns `answer`, which rejects when `signal` ends it or the engine cannot be reached, and
   * `ended`, which resolves when the engine no longer works on it
   */
  run: (
    query: AnalystQuery,
    signal: AbortSignal,
  ) => { answer: Promise<Answer>; ended: Promise<void> }
  close: () => void
}

export class AnswerTooLarge extends Error {}

const returnedHeaders = /^(content-type|content-encoding|x-clickhouse-[a-z-]+)$/
/** Between two checks whether a killed query has ended. */
const endedPollMs = 100
const ownQueryMaxMs = 5_000

/** @param options.answerBytesMax the largest response */
export function openAnalystEngine(options: {
  /** The URL with the password of the user `default`. */
  clickhouseUrl: string
  answerBytesMax: number
}): AnalystEngine {
  const url = new URL(options.clickhouseUrl)
  const connection: Connection = {
    agent: new Agent({ keepAlive: true }),
    hostname: url.hostname,
    port: url.port,
    password: decodeURIComponent(url.password),
  }
  let refusedNames: RefusedNames | null = null
  return {
    judge: async (query) => {
      refusedNames ??= await readRefusedNames(connection)
      const tokens = await readTokens(connection, query)
      return checkStatement(query.parsed, tokens, refusedNames)
    },
    run: (query, signal) => {
      const queryId = randomUUID()
      const answer = runQuery(connection, { query, queryId, signal, ...options })
      const ended = answer.then(
        () => undefined,
        () => killQuery(connection, queryId),
      )
      return { answer, ended }
    },
    close: () => connection.agent.destroy(),
  }
}

type Connection = { agent: Agent; hostname: string; port: string; password: string }

function toAnalystHeaders({ password }: Connection, tenantId: string): Record<string, string> {
  return {
    'content-type': 'text/plain; charset=utf-8',
    'x-clickhouse-user': 'analyst',
    'x-clickhouse-key': toAnalystPassword(password),
    [tenantHeader.toLowerCase()]: tenantId,
  }
}

type Post = { path: string; headers: Record<string, string>; body: string; signal: AbortSignal }

function post(
  { agent, hostname, port }: Connection,
  { path, headers, body, signal }: Post,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ agent, hostname, port, path, method: 'POST', headers, signal }, resolve)
    sent.once('error', reject)
    sent.end(body)
  })
}

/** Runs one of our own statements. @throws on anything but a 200 */
async function postStatement(
  connection: Connection,
  headers: Record<string, string>,
  body: string,
): Promise<string> {
  const signal = AbortSignal.timeout(ownQueryMaxMs)
  const response = await post(connection, { path: '/', headers, body, signal })
  const text = (await readWhole(response, Infinity)).toString()
  if (response.statusCode !== 200) throw new Error(text)
  return text
}

function queryAsDefault(connection: Connection, statement: string): Promise<string> {
  const { password } = connection
  const headers = { 'x-clickhouse-user': 'default', 'x-clickhouse-key': password }
  return postStatement(connection, headers, statement)
}

async function readRefusedNames(connection: Connection): Promise<RefusedNames> {
  const columns = 'name, alias_to, categories, is_aggregate'
  const [functions, tableFunctions] = await Promise.all([
    queryAsDefault(connection, `select ${columns} from system.functions format JSONEachRow`),
    queryAsDefault(connection, 'select name from system.table_functions format JSONEachRow'),
  ])
  return toRefusedNames(
    toRows<EngineFunction>(functions),
    toRows<{ name: string }>(tableFunctions).map(({ name }) => name),
  )
}

async function readTokens(
  connection: Connection,
  { parsed, tenantId }: AnalystQuery,
): Promise<Token[]> {
  const headers = toAnalystHeaders(connection, tenantId)
  return parseTokens(await postStatement(connection, headers, toTokensStatement(parsed.query)))
}

async function runQuery(
  connection: Connection,
  running: { query: AnalystQuery; queryId: string; signal: AbortSignal; answerBytesMax: number },
): Promise<Answer> {
  const { query, queryId, signal, answerBytesMax } = running
  const { parsed, tenantId } = query
  const parameters = new URLSearchParams({ database: 'analytics' })
  for (const [name, value] of parsed.parameters) parameters.set(name, value)
  parameters.set('query_id', queryId)
  // Up to this size the engine sends a complete response, or an error with its status.
  parameters.set('wait_end_of_query', '0')
  parameters.set('buffer_size', `${answerBytesMax + 1}`)
  const headers = { ...query.headers, ...toAnalystHeaders(connection, tenantId) }
  const path = `/?${parameters}`
  const response = await post(connection, { path, headers, body: parsed.query, signal })
  const body = await readWhole(response, answerBytesMax)
  return { status: response.statusCode ?? 502, headers: toReturned(response), body }
}

/** Kills a query, and resolves when the engine does not run it. */
async function killQuery(connection: Connection, queryId: string): Promise<void> {
  for (;;) {
    try {
      const kill = `kill query where query_id = '${queryId}' async format Null`
      await queryAsDefault(connection, kill)
      const left = `select count() from system.processes where query_id = '${queryId}'`
      if (Number(await queryAsDefault(connection, left)) === 0) return
    } catch (error) {
      // When the engine does not run, the query does not run either.
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return
    }
    await sleep(endedPollMs, undefined, { ref: false })
  }
}

/**
 * @throws AnswerTooLarge beyond `bytesMax`, and the error of the stream when it is cut off
 */
async function readWhole(response: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new AnswerTooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function toRows<Row>(lines: string): Row[] {
  return lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Row)
}

function toReturned({ headers }: IncomingMessage): Record<string, string> {
  const returned: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (returnedHeaders.test(name) && typeof value === 'string') returned[name] = value
  }
  return returned
}
