// The analysts' address of the local stack: ClickHouse's HTTP interface for analysts, whom the
// embedded engine cannot store as users. It checks the password and passes the request on as the
// engine's user `analyst`, with the tenant in a header that SQL cannot change. It reads no SQL: the
// engine's own grants, settings and row policies apply. That is a convenience and no wall: the
// engine's function `file` needs no grant here. A ClickHouse server has its own users instead.

import { hash } from 'node:crypto'
import {
  Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import { pipeline } from 'node:stream'
import { parseAnalystUser } from '#shared/core/analytics/analyst-access.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import { createHttpServer, listen } from '#shared/io/http/http-server.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { analystUser, tenantHeader, toAnalystPassword } from './server-config.ts'

export type AnalystFrontOptions = {
  /** 0 takes a free port of 127.0.0.1. */
  port: number
  /** The engine's URL, with the password of the user `default`. */
  clickhouseUrl: string
  /** Whether the password is the analyst's. */
  isAnalyst: (analyst: { tenantId: string; name: string; passwordHash: Buffer }) => Promise<boolean>
  log: Log
  metrics: Metrics
}

export type AnalystFront = { url: string; close: () => Promise<void> }

type Front = Pick<AnalystFrontOptions, 'isAnalyst'> & {
  agent: Agent
  engine: { hostname: string; port: string; password: string }
  refuse: (to: ServerResponse, refusal: Refusal) => void
}

/** An error in ClickHouse's form. */
type Refusal = { status: number; code: number; name: string; text: string }

/** Opens the address; it answers until it is closed, also while the engine does not run. */
export async function openAnalystFront(options: AnalystFrontOptions): Promise<AnalystFront> {
  const { log, metrics, isAnalyst } = options
  const { hostname, port, password } = new URL(options.clickhouseUrl)
  const failures = metrics.counter<'reason'>(
    'di_analyst_queries_failed_total',
    'Requests of analysts that did not reach the engine, by reason',
    ['reason'],
  )
  for (const { name } of [notSignedIn, unreachable]) failures.inc({ reason: name }, 0)
  const front: Front = {
    isAnalyst,
    agent: new Agent({ keepAlive: true }),
    engine: { hostname, port, password: decodeURIComponent(password) },
    refuse: (to, refusal) => {
      failures.inc({ reason: refusal.name })
      refuse(to, refusal)
    },
  }
  const app = createHttpServer({ log, metrics, direct: (from, to) => respond(front, from, to) })
  const url = await listen(app, { host: '127.0.0.1', port: options.port })
  return {
    url,
    close: async () => {
      app.server.closeAllConnections()
      await app.close()
      front.agent.destroy()
    },
  }
}

/** @returns false for a path that the engine's queries do not have */
function respond(front: Front, from: IncomingMessage, to: ServerResponse): boolean {
  const url = URL.parse(from.url ?? '/', 'http://analysts')
  if (url?.pathname === '/ping') {
    to.end('Ok.\n')
    return true
  }
  if (url?.pathname !== '/') return false
  void passOn(front, url, from, to)
  return true
}

async function passOn(
  front: Front,
  url: URL,
  from: IncomingMessage,
  to: ServerResponse,
): Promise<void> {
  const tenantId = await findTenant(front, from.headers, url).catch(() => null)
  if (tenantId === null) return front.refuse(to, notSignedIn)
  proveConnection(from.socket)
  for (const name of ['user', 'password']) url.searchParams.delete(name)
  const { hostname, port, password } = front.engine
  const sent = request({
    agent: front.agent,
    hostname,
    port,
    method: from.method ?? 'GET',
    path: `/?${url.searchParams}`,
    headers: {
      ...toPassed(from.headers),
      'x-clickhouse-user': analystUser,
      'x-clickhouse-key': toAnalystPassword(password),
      [tenantHeader]: tenantId,
    },
  })
  // The engine ends a query whose connection is closed.
  to.once('close', () => sent.destroy())
  pipeline(from, sent, () => undefined)
  sent.once('error', () => {
    if (to.headersSent) to.destroy()
    else front.refuse(to, unreachable)
  })
  sent.once('response', (answer) => {
    to.writeHead(answer.statusCode ?? 502, toPassed(answer.headers))
    pipeline(answer, to, () => undefined)
  })
}

/** The tenant of the analyst who signs in, or null. */
async function findTenant(
  { isAnalyst }: Front,
  headers: IncomingHttpHeaders,
  url: URL,
): Promise<string | null> {
  const { user, password } = readCredentials(headers, url)
  const analyst = parseAnalystUser(user)
  if (analyst === null) return null
  const passwordHash = hash('sha256', password, 'buffer')
  return (await isAnalyst({ ...analyst, passwordHash })) ? analyst.tenantId : null
}

/** The three ways of ClickHouse's clients: its own headers, Basic, parameters. */
function readCredentials(headers: IncomingHttpHeaders, url: URL) {
  const own = headers['x-clickhouse-user']
  if (typeof own === 'string') {
    return { user: own, password: String(headers['x-clickhouse-key'] ?? '') }
  }
  const basic = /^Basic ([\w+/=]+)$/i.exec(headers.authorization ?? '')?.[1]
  if (basic !== undefined) {
    const text = Buffer.from(basic, 'base64').toString()
    const at = text.indexOf(':')
    return { user: text.slice(0, at), password: text.slice(at + 1) }
  }
  const { searchParams } = url
  return { user: searchParams.get('user') ?? '', password: searchParams.get('password') ?? '' }
}

/** Headers that sign in, or that are of one connection only. */
const keptBack = new Set([
  ...['authorization', 'x-clickhouse-user', 'x-clickhouse-key', 'x-clickhouse-quota'],
  ...['x-clickhouse-ssl-certificate-auth', tenantHeader.toLowerCase()],
  ...['host', 'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade'],
  ...['transfer-encoding', 'expect'],
])

const toPassed = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !keptBack.has(name)))

function refuse(to: ServerResponse, { status, code, name, text }: Refusal): void {
  if (to.destroyed) return
  // What is left of the body is not read.
  to.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-clickhouse-exception-code': `${code}`,
    connection: 'close',
  })
  to.end(`Code: ${code}. DB::Exception: ${text}. (${name})\n`)
}

const notSignedIn: Refusal = {
  status: 403,
  code: 516,
  name: 'AUTHENTICATION_FAILED',
  text: 'Authentication failed: password is incorrect, or there is no user with such name',
}

const unreachable: Refusal = {
  status: 503,
  code: 210,
  name: 'NETWORK_ERROR',
  text: 'The engine cannot be reached now',
}
