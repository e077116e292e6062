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
import {
  analystAnswerBytesMax,
  analystQueryMaxMs,
  parseAnalystUser,
  toAnalystQueryLimits,
} from '#shared/core/analytics/analyst-access.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantSemaphore, type SemaphoreLimits } from '#shared/io/process/tenant-semaphore.ts'
import { type Answer, openAnalystEngine } from './analyst-engine.ts'
import { parseAnalystRequest, type Refusal } from './analyst-request.ts'
import {
  type FailureReason,
  failureReasons,
  type QueryDeps,
  runQueryFor,
  unreachable,
} from './analyst-run.ts'
import { openNativeProxy } from './native/native-proxy.ts'

export type AnalystProxyOptions = {
  /** 0 takes a free port of 127.0.0.1. */
  port: number
  /** Likewise, of the native protocol. */
  nativePort: number
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

/** `native` is host and port of the native protocol. */
export type AnalystProxy = { url: string; native: string; close: () => Promise<void> }

const bodyBytesMax = 1024 * 1024
/** A client that reads more slowly is cut off; the largest response needs 2 MiB/s. */
const defaultSendMaxMs = 32_000
const forwardedHeaders = ['accept-encoding', 'x-clickhouse-format', 'x-clickhouse-database']

type Login = { user: string; password: string }

type Fail = (to: ServerResponse, reason: FailureReason, refusal: Refusal) => void

type Proxy = Required<Pick<AnalystProxyOptions, 'sendMaxMs'>> &
  Pick<AnalystProxyOptions, 'isAnalyst'> &
  QueryDeps & {
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
  const findOwn = (login: Login) => findTenant(proxy, login)
  const native = await openNativeProxy(
    { ...proxy, findTenant: findOwn, notSignedIn },
    options.nativePort,
  )
  return {
    url: `http://127.0.0.1:${port}`,
    native: `127.0.0.1:${native.port}`,
    close: async () => {
      await native.close()
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
  const url = URL.parse(from.url ?? '/', 'http://analysts')
  if (url?.pathname === '/ping') return void to.end('Ok.\n')
  if (url?.pathname !== '/') {
    return fail(to, 'request', { ...wrongRequest, status: 404, text: 'No page' })
  }
  if (from.method !== 'GET' && from.method !== 'POST') {
    return fail(to, 'request', { ...wrongRequest, status: 405, text: 'GET and POST only' })
  }
  const tenantId = await findTenant(proxy, readCredentials(from.headers, url))
  if (tenantId === null) return fail(to, 'authentication', notSignedIn)
  const body = await readBody(from)
  if (typeof body !== 'string') return fail(to, 'request', body)
  const result = parseAnalystRequest(url, body)
  if (!result.ok) return fail(to, 'request', result.refusal)
  const query = { tenantId, parsed: result.parsed, headers: toForwarded(from.headers) }
  await runQueryFor(proxy, query, {
    hasLeft: () => to.destroyed,
    onLeave: (leave) => to.once('close', leave),
    send: (answer) => send(to, answer, proxy.sendMaxMs),
    fail: (reason, refusal) => fail(to, reason, refusal),
    isAnswered: new Promise<void>((resolve) => to.once('close', resolve)),
  })
}

/** The tenant of the analyst who signs in, or null. */
async function findTenant(
  { isAnalyst }: Pick<Proxy, 'isAnalyst'>,
  { user, password }: Login,
): Promise<string | null> {
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
function readCredentials(headers: IncomingHttpHeaders, url: URL): Login {
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
function refuse(to: ServerResponse, { status, code, name, text }: Refusal): void {
  if (to.destroyed) return
  to.writeHead(status, {
    ...plainText,
    'x-clickhouse-exception-code': String(code),
    connection: 'close',
  })
  to.end(`Code: ${code}. DB::Exception: ${text}. (${name})\n`)
}
