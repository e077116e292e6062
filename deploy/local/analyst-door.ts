// The analysts' address of the local stack: ClickHouse's HTTP interface, read-only and confined to
// the tenant of whoever signs in. It checks the password, names the tenant in a header that no SQL
// can reach, and passes the query on as the engine's user `analyst`; the engine's own grants and
// row policies do the rest. A real server has users of its own and needs none of this.

import { hash } from 'node:crypto'
import {
  Agent,
  request as ask,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { analystSettings, parseAnalystUser, toTurnLimits } from '#shared/core/analyst-access.ts'
import { createTurns, type TurnLimits } from '#shared/io/turns.ts'
import { type AskedQuery, type Refusal, readAskedQuery } from './analyst-request.ts'
import { judgeRendering, toRenderingStatement } from './analyst-statement.ts'
import { tenantHeader, toAnalystPassword } from './clickhouse-http/server-config.ts'

export type AnalystDoorOptions = {
  /** 0 takes a free port of 127.0.0.1. */
  port: number
  /** The engine, with the password of `default` in it. */
  clickhouseUrl: string
  /** Whether somebody is who they say. */
  isAnalyst: (analyst: { tenantId: string; name: string; passwordHash: Buffer }) => Promise<boolean>
  /** By the machine's cores when left out. */
  limits?: TurnLimits
  /** An answer is cut off beyond this: the engine's own limit does not count every column. */
  answerBytesMax?: number
}

export type AnalystDoor = { url: string; close: () => Promise<void> }

type Query = {
  tenantId: string
  asked: AskedQuery
  headers: IncomingHttpHeaders
  to: ServerResponse
}

const bodyBytesMax = 1024 * 1024
/** Longer than any query may take: the engine's own limit ends it first. */
const answerMaxMs = 60_000
const passedHeaders = ['accept-encoding', 'x-clickhouse-format', 'x-clickhouse-database']
const returnedHeaders = /^(content-type|content-encoding|x-clickhouse-[a-z-]+)$/

/** Opens the address; it answers as long as it is not closed, whether the engine runs or not. */
export async function openAnalystDoor(options: AnalystDoorOptions): Promise<AnalystDoor> {
  const turns = createTurns(options.limits ?? toTurnLimits(availableParallelism()))
  const answerBytesMax = options.answerBytesMax ?? Number(analystSettings.max_result_bytes)
  const engine = new URL(options.clickhouseUrl)
  const agent = new Agent({ keepAlive: true, timeout: answerMaxMs })
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (from, to) => {
    answer(from, to).catch((error: unknown) => {
      if (to.headersSent) to.destroy()
      else refuse(to, unreachable(error))
    })
  })
  server.maxConnections = 256

  async function answer(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const url = new URL(from.url ?? '/', 'http://analysts')
    if (url.pathname === '/ping') return void to.end('Ok.\n')
    if (url.pathname !== '/') return refuse(to, { ...wrongRequest, status: 404, text: 'No page' })
    if (from.method !== 'GET' && from.method !== 'POST') {
      return refuse(to, { ...wrongRequest, status: 405, text: 'GET and POST only' })
    }
    const tenantId = await findTenant(from.headers, url)
    if (tenantId === null) return refuse(to, notSignedIn)
    const body = await readBody(from)
    if (typeof body !== 'string') return refuse(to, body)
    const reading = readAskedQuery(url, body)
    if (!reading.ok) return refuse(to, reading.refusal)
    const end = await turns.take(tenantId)
    if (end === null) return refuse(to, tooMany)
    to.once('close', end)
    // Whoever left while waiting must not keep the turn.
    if (to.destroyed) return end()
    const query = { tenantId, asked: reading.asked, headers: from.headers, to }
    if (await isHarmless(query)) await pass(query)
  }

  async function findTenant(headers: IncomingHttpHeaders, url: URL): Promise<string | null> {
    const { user, password } = readCredentials(headers, url)
    const analyst = parseAnalystUser(user)
    if (analyst === null) return null
    const passwordHash = hash('sha256', password, 'buffer')
    return (await options.isAnalyst({ ...analyst, passwordHash })) ? analyst.tenantId : null
  }

  /** Answers what the engine cannot read, or what no grant covers; true when nothing was said. */
  async function isHarmless(query: Query): Promise<boolean> {
    const { asked, tenantId, to } = query
    const { status, text } = await render(asked.query, toHeaders(tenantId))
    if (status !== 200) {
      to.writeHead(status, plainText).end(text)
      return false
    }
    const refusal = judgeRendering(text, asked.parameters)
    if (refusal !== null) refuse(to, refusal)
    return refusal === null
  }

  function render(
    query: string,
    headers: Record<string, string>,
  ): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const asking = askEngine('/', headers, (given) => {
        const chunks: Buffer[] = []
        given.on('data', (chunk: Buffer) => chunks.push(chunk))
        given.once('error', reject)
        given.once('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          resolve({ status: given.statusCode ?? 502, text })
        })
      })
      asking.once('error', reject)
      asking.end(toRenderingStatement(query))
    })
  }

  function askEngine(
    path: string,
    headers: Record<string, string>,
    onAnswer: (given: IncomingMessage) => void,
  ) {
    const { hostname, port } = engine
    const asking = ask({ agent, hostname, port, path, method: 'POST', headers }, onAnswer)
    asking.setTimeout(answerMaxMs, () => asking.destroy(new Error('no answer in time')))
    return asking
  }

  function toHeaders(tenantId: string): Record<string, string> {
    return {
      'content-type': 'text/plain; charset=utf-8',
      'x-clickhouse-user': 'analyst',
      'x-clickhouse-key': toAnalystPassword(decodeURIComponent(engine.password)),
      [tenantHeader.toLowerCase()]: tenantId,
    }
  }

  function pass({ tenantId, asked, headers: sent, to }: Query): Promise<void> {
    const parameters = new URLSearchParams({ database: 'analytics' })
    for (const [name, value] of asked.parameters) parameters.set(name, value)
    const headers = toHeaders(tenantId)
    for (const name of passedHeaders) {
      const value = sent[name]
      if (typeof value === 'string') headers[name] = value
    }
    return new Promise((resolve, reject) => {
      let answered = false
      const asking = askEngine(`/?${parameters}`, headers, (given) => {
        to.writeHead(given.statusCode ?? 502, toReturned(given.headers))
        let bytes = 0
        given.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > answerBytesMax) to.destroy()
        })
        given.pipe(to)
        given.once('error', reject)
        given.once('end', () => {
          answered = true
          resolve()
        })
      })
      asking.once('error', reject)
      // The engine ends a query whose reader has gone; a socket that is done serves the next.
      to.once('close', () => {
        if (!answered) asking.destroy()
      })
      asking.end(asked.query)
    })
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      agent.destroy()
      await closed
    },
  }
}

/** The three ways of ClickHouse's clients: headers of its own, Basic, parameters. */
function readCredentials(
  headers: IncomingHttpHeaders,
  url: URL,
): { user: string; password: string } {
  const own = headers['x-clickhouse-user']
  if (typeof own === 'string') {
    return { user: own, password: String(headers['x-clickhouse-key'] ?? '') }
  }
  const basic = /^Basic ([\w+/=]+)$/i.exec(headers.authorization ?? '')?.[1]
  if (basic !== undefined) {
    const [user = '', ...password] = Buffer.from(basic, 'base64').toString().split(':')
    return { user, password: password.join(':') }
  }
  const { searchParams } = url
  return { user: searchParams.get('user') ?? '', password: searchParams.get('password') ?? '' }
}

/** The text of the body; a form or a compressed body could hide what was not read here. */
async function readBody(from: IncomingMessage): Promise<string | Refusal> {
  const type = from.headers['content-type'] ?? ''
  if (/^multipart\//i.test(type)) return { ...wrongRequest, text: 'Send the query as the body' }
  if ((from.headers['content-encoding'] ?? 'identity') !== 'identity') {
    return { ...wrongRequest, text: 'Send the query uncompressed' }
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of from as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) return { ...wrongRequest, status: 413, text: 'The body is too large' }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function toReturned(headers: IncomingHttpHeaders): Record<string, string> {
  const returned: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (returnedHeaders.test(name) && typeof value === 'string') returned[name] = value
  }
  return returned
}

const plainText = { 'content-type': 'text/plain; charset=UTF-8' }
const wrongRequest = { status: 400, code: 36, name: 'BAD_ARGUMENTS' } as const
const notSignedIn: Refusal = {
  status: 403,
  code: 516,
  name: 'AUTHENTICATION_FAILED',
  text: 'Authentication failed: password is incorrect, or there is no user with such name',
}
const tooMany: Refusal = {
  status: 503,
  code: 202,
  name: 'TOO_MANY_SIMULTANEOUS_QUERIES',
  text: 'Too many simultaneous queries of this tenant; try again',
}

function unreachable(error: unknown): Refusal {
  const why = (error as NodeJS.ErrnoException).code ?? 'no answer'
  return {
    status: 503,
    code: 210,
    name: 'NETWORK_ERROR',
    text: `The engine cannot be asked now (${why})`,
  }
}

function refuse(to: ServerResponse, { status, code, name, text }: Refusal): void {
  to.writeHead(status, {
    ...plainText,
    'x-clickhouse-exception-code': String(code),
    connection: 'close',
  })
  to.end(`Code: ${code}. DB::Exception: ${text}. (${name})\n`)
}
