// The analysts' proxy of the local stack: ClickHouse's HTTP interface, read-only and limited to the
// tenant of the analyst who signs in. It checks the password, sets the tenant in a header that SQL
// cannot change, and forwards the query as the engine's user `analyst`, to whom the engine's grants
// and row policies apply. A production server has its own users and needs no proxy.

import { hash } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  analystAnswerBytesMax,
  analystQueryMaxMs,
  parseAnalystUser,
  toAnalystQueryLimits,
} from '#shared/core/analytics/analyst-access.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import {
  createTenantSemaphore,
  type Permit,
  type SemaphoreLimits,
  type TenantSemaphore,
} from '#shared/io/process/tenant-semaphore.ts'
import {
  type AnalystEngine,
  type AnalystQuery,
  type Answer,
  AnswerTooLarge,
  openAnalystEngine,
} from './analyst-engine.ts'
import { parseAnalystRequest, type Refusal } from './analyst-request.ts'

export type AnalystProxyOptions = {
  /** 0 takes a free port of 127.0.0.1. */
  port: number
  /** The engine's URL, with the password of the user `default`. */
  clickhouseUrl: string
  /** Whether the password is the analyst's. */
  isAnalyst: (analyst: { tenantId: string; name: string; passwordHash: Buffer }) => Promise<boolean>
  metrics: Metrics
  /** Chosen by the machine's cores by default. */
  limits?: SemaphoreLimits
  answerBytesMax?: number
  queryMaxMs?: number
  sendMaxMs?: number
}

export type AnalystProxy = { url: string; close: () => Promise<void> }

const bodyBytesMax = 1024 * 1024
/** A client that reads more slowly is cut off; the largest response needs 2 MiB/s. */
const defaultSendMaxMs = 32_000
/** How long a query counts towards the limit of all tenants after its response is known. */
const endingMs = 2_000
const forwardedHeaders = ['accept-encoding', 'x-clickhouse-format', 'x-clickhouse-database']

/** Why a query has no result; the labels of a metric. */
const failureReasons = [
  'authentication',
  'request',
  'statement',
  'concurrency',
  'time',
  'size',
  'engine_error',
  'engine_unreachable',
  'client_left',
] as const
type FailureReason = (typeof failureReasons)[number]

type Fail = (to: ServerResponse, reason: FailureReason, refusal: Refusal) => void

type Proxy = Required<Pick<AnalystProxyOptions, 'answerBytesMax' | 'queryMaxMs' | 'sendMaxMs'>> &
  Pick<AnalystProxyOptions, 'isAnalyst'> & {
    semaphore: TenantSemaphore
    engine: AnalystEngine
    countFailure: (reason: FailureReason) => void
    /** Rejects and counts. */
    fail: Fail
  }

/** Opens the proxy; it responds until it is closed, also while the engine does not run. */
export async function openAnalystProxy(options: AnalystProxyOptions): Promise<AnalystProxy> {
  const proxy = createProxy(options)
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (from, to) => {
    respond(proxy, from, to).catch((error: unknown) => {
      if (to.headersSent) to.destroy()
      else proxy.fail(to, 'engine_unreachable', unreachable(error))
    })
  })
  server.maxConnections = 256
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
      proxy.engine.close()
      await closed
    },
  }
}

function createProxy(options: AnalystProxyOptions): Proxy {
  const limits = options.limits ?? toAnalystQueryLimits(availableParallelism())
  const { answerBytesMax = analystAnswerBytesMax, queryMaxMs = analystQueryMaxMs } = options
  const { clickhouseUrl, isAnalyst, metrics, sendMaxMs = defaultSendMaxMs } = options
  const failures = metrics.counter<'reason'>(
    'di_analyst_queries_failed_total',
    'Queries of analysts that were refused or failed, by reason',
    ['reason'],
  )
  for (const reason of failureReasons) failures.inc({ reason }, 0)
  const countFailure = (reason: FailureReason) => failures.inc({ reason })
  return {
    isAnalyst,
    answerBytesMax,
    queryMaxMs,
    sendMaxMs,
    semaphore: createTenantSemaphore(limits),
    engine: openAnalystEngine({ clickhouseUrl, answerBytesMax }),
    countFailure,
    fail: (to, reason, refusal) => {
      countFailure(to.destroyed ? 'client_left' : reason)
      refuse(to, refusal)
    },
  }
}

async function respond(proxy: Proxy, from: IncomingMessage, to: ServerResponse): Promise<void> {
  const { fail } = proxy
  const url = new URL(from.url ?? '/', 'http://analysts')
  if (url.pathname === '/ping') return void to.end('Ok.\n')
  if (url.pathname !== '/') {
    return fail(to, 'request', { ...wrongRequest, status: 404, text: 'No page' })
  }
  if (from.method !== 'GET' && from.method !== 'POST') {
    return fail(to, 'request', { ...wrongRequest, status: 405, text: 'GET and POST only' })
  }
  const tenantId = await findTenant(proxy, from.headers, url)
  if (tenantId === null) return fail(to, 'authentication', notSignedIn)
  const body = await readBody(from)
  if (typeof body !== 'string') return fail(to, 'request', body)
  const result = parseAnalystRequest(url, body)
  if (!result.ok) return fail(to, 'request', result.refusal)
  const permit = await proxy.semaphore.acquire(tenantId)
  if (permit === null) return fail(to, 'concurrency', tooMany)
  const query = { tenantId, parsed: result.parsed, headers: toForwarded(from.headers) }
  await respondWithPermit(proxy, query, to, permit)
}

/** Releases the permit when the response is sent and the engine has stopped the query. */
async function respondWithPermit(
  proxy: Proxy,
  query: AnalystQuery,
  to: ServerResponse,
  permit: Permit,
): Promise<void> {
  const left = new Promise<void>((resolve) => to.once('close', resolve))
  try {
    // The client can leave while it waits.
    if (to.destroyed) return proxy.countFailure('client_left')
    const refusal = await proxy.engine.judge(query)
    if (refusal !== null) return proxy.fail(to, 'statement', refusal)
    if (!to.destroyed) await run(proxy, query, to, permit)
    await left
  } finally {
    permit.release()
  }
}

async function run(
  proxy: Proxy,
  query: AnalystQuery,
  to: ServerResponse,
  permit: Permit,
): Promise<void> {
  const { engine, fail, answerBytesMax, queryMaxMs } = proxy
  const stopping = new AbortController()
  const timer = setTimeout(() => stopping.abort(), queryMaxMs)
  to.once('close', () => stopping.abort())
  const { answer, ended } = engine.run(query, stopping.signal)
  try {
    const response = await answer
    if (response.status !== 200) proxy.countFailure('engine_error')
    send(to, response, proxy.sendMaxMs)
  } catch (error) {
    if (error instanceof AnswerTooLarge) fail(to, 'size', tooLarge(answerBytesMax))
    else if (stopping.signal.aborted) fail(to, 'time', tooSlow(queryMaxMs))
    else fail(to, 'engine_unreachable', unreachable(error))
  } finally {
    clearTimeout(timer)
  }
  await Promise.race([ended, sleep(endingMs)])
  permit.releaseTotal()
  await ended
}

/** The tenant of the analyst who signs in, or null. */
async function findTenant(
  { isAnalyst }: Proxy,
  headers: IncomingHttpHeaders,
  url: URL,
): Promise<string | null> {
  const { user, password } = readCredentials(headers, url)
  const analyst = parseAnalystUser(user)
  if (analyst === null) return null
  const passwordHash = hash('sha256', password, 'buffer')
  return (await isAnalyst({ ...analyst, passwordHash })) ? analyst.tenantId : null
}

function send(to: ServerResponse, { status, headers, body }: Answer, maxMs: number): void {
  const timer = setTimeout(() => to.destroy(), maxMs)
  to.once('close', () => clearTimeout(timer))
  to.writeHead(status, { ...headers, 'content-length': body.length })
  to.end(body)
}

function toForwarded(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of forwardedHeaders) {
    const value = headers[name]
    if (typeof value === 'string') passed[name] = value
  }
  return passed
}

/** The three methods of ClickHouse's clients: its own headers, Basic, parameters. */
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

/**
 * The text of the body. Forms and compressed bodies are rejected, because they are not parsed here.
 */
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

const tooLarge = (bytes: number): Refusal => ({
  status: 500,
  code: 396,
  name: 'TOO_MANY_ROWS_OR_BYTES',
  text: `Limit for result exceeded, max bytes: ${bytes}; ask for less, or for a part at a time`,
})

const tooSlow = (ms: number): Refusal => ({
  status: 408,
  code: 159,
  name: 'TIMEOUT_EXCEEDED',
  text: `Timeout exceeded: maximum: ${ms} ms`,
})

function unreachable(error: unknown): Refusal {
  const why = (error as NodeJS.ErrnoException).code ?? 'no answer'
  return {
    status: 503,
    code: 210,
    name: 'NETWORK_ERROR',
    text: `The engine cannot be reached now (${why})`,
  }
}

function refuse(to: ServerResponse, { status, code, name, text }: Refusal): void {
  if (to.destroyed) return
  to.writeHead(status, {
    ...plainText,
    'x-clickhouse-exception-code': String(code),
    connection: 'close',
  })
  to.end(`Code: ${code}. DB::Exception: ${text}. (${name})\n`)
}
