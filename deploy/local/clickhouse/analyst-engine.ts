// The engine as the analysts' address uses it: runs a query as the engine's user `analyst` for
// one tenant, holds the answer until it is whole, and knows when a query has really ended, which
// may be long after its reader has left.

import { randomUUID } from 'node:crypto'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EngineFunction, type RefusedNames, toRefusedNames } from './analyst-functions.ts'
import type { ParsedQuery, Refusal } from './analyst-request.ts'
import { checkStatement, parseTokens, toTokensStatement } from './analyst-statement.ts'
import { tenantHeader, toAnalystPassword } from './server-config.ts'

export type AnalystQuery = {
  tenantId: string
  asked: ParsedQuery
  /** Headers of the client that the engine may see. */
  headers: Record<string, string>
}

export type Answer = { status: number; headers: Record<string, string>; body: Buffer }

export type AnalystEngine = {
  /** What speaks against a query: its syntax, or a name that analysts may not use. */
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
/** Between two looks at whether a query that was ended is gone. */
const endedPollMs = 100
const ownQueryMaxMs = 5_000

/** @param options.answerBytesMax an answer beyond this is refused */
export function openAnalystEngine(options: {
  /** With the password of `default` in it. */
  clickhouseUrl: string
  answerBytesMax: number
}): AnalystEngine {
  const url = new URL(options.clickhouseUrl)
  const password = decodeURIComponent(url.password)
  const agent = new Agent({ keepAlive: true })
  let refusedNames: RefusedNames | null = null

  const asAnalyst = (tenantId: string) => ({
    'content-type': 'text/plain; charset=utf-8',
    'x-clickhouse-user': 'analyst',
    'x-clickhouse-key': toAnalystPassword(password),
    [tenantHeader.toLowerCase()]: tenantId,
  })

  function post(asking: {
    path: string
    headers: Record<string, string>
    body: string
    signal: AbortSignal
  }): Promise<IncomingMessage> {
    const { path, headers, body, signal } = asking
    const { hostname, port } = url
    return new Promise((resolve, reject) => {
      const sent = request(
        { agent, hostname, port, path, method: 'POST', headers, signal },
        resolve,
      )
      sent.once('error', reject)
      sent.end(body)
    })
  }

  async function asService(statement: string): Promise<string> {
    const headers = { 'x-clickhouse-user': 'default', 'x-clickhouse-key': password }
    const signal = AbortSignal.timeout(ownQueryMaxMs)
    const given = await post({ path: '/', headers, body: statement, signal })
    const text = (await readWhole(given, Infinity)).toString()
    if (given.statusCode !== 200) throw new Error(text)
    return text
  }

  async function readRefusedNames(): Promise<RefusedNames> {
    const columns = 'name, alias_to, categories, is_aggregate'
    const [functions, tableFunctions] = await Promise.all([
      asService(`select ${columns} from system.functions format JSONEachRow`),
      asService('select name from system.table_functions format JSONEachRow'),
    ])
    return toRefusedNames(
      toRows<EngineFunction>(functions),
      toRows<{ name: string }>(tableFunctions).map(({ name }) => name),
    )
  }

  async function judge({ asked, tenantId }: AnalystQuery): Promise<Refusal | null> {
    refusedNames ??= await readRefusedNames()
    const body = toTokensStatement(asked.query)
    const signal = AbortSignal.timeout(ownQueryMaxMs)
    const given = await post({ path: '/', headers: asAnalyst(tenantId), body, signal })
    const text = (await readWhole(given, Infinity)).toString()
    if (given.statusCode !== 200) throw new Error(text)
    return checkStatement(asked, parseTokens(text), refusedNames)
  }

  function run(
    { asked, tenantId, headers }: AnalystQuery,
    signal: AbortSignal,
  ): { answer: Promise<Answer>; ended: Promise<void> } {
    const queryId = randomUUID()
    const parameters = new URLSearchParams({ database: 'analytics' })
    for (const [name, value] of asked.parameters) parameters.set(name, value)
    parameters.set('query_id', queryId)
    // What the engine sends is whole, or an error with its status, up to the bytes that we take.
    parameters.set('wait_end_of_query', '0')
    parameters.set('buffer_size', `${options.answerBytesMax + 1}`)
    const answer = (async () => {
      const path = `/?${parameters}`
      const sent = { ...headers, ...asAnalyst(tenantId) }
      const given = await post({ path, headers: sent, body: asked.query, signal })
      const body = await readWhole(given, options.answerBytesMax)
      return { status: given.statusCode ?? 502, headers: toReturned(given), body }
    })()
    const ended = answer.then(
      () => undefined,
      () => endQuery(queryId),
    )
    return { answer, ended }
  }

  /** Resolves when the engine does not run the query, having told it to stop. */
  async function endQuery(queryId: string): Promise<void> {
    for (;;) {
      try {
        await asService(`kill query where query_id = '${queryId}' async format Null`)
        const left = `select count() from system.processes where query_id = '${queryId}'`
        if (Number(await asService(left)) === 0) return
      } catch (error) {
        // An engine that does not run does not run the query either.
        if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return
      }
      await sleep(endedPollMs, undefined, { ref: false })
    }
  }

  return { judge, run, close: () => agent.destroy() }
}

/**
 * @throws AnswerTooLarge beyond `bytesMax`; what the stream fails with, also when it is cut off
 */
async function readWhole(given: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of given as AsyncIterable<Buffer>) {
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
