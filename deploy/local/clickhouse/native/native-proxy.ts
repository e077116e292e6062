// The native protocol for analysts of the local stack, for `clickhouse-client` and drivers that
// speak it. A query runs as one over HTTP does, with the same password, checks, rights and limits;
// its answer is sent as packets once it is whole. The engine's own native port stays closed: any
// program of the machine could end the engine with one failed greeting.

import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Answer } from '../analyst-engine.ts'
import { parseAnalystRequest, type Refusal } from '../analyst-request.ts'
import { type FailureReason, type QueryDeps, runQueryFor, unreachable } from '../analyst-run.ts'
import { splitBlocks } from './native-blocks.ts'
import {
  type ClientHello,
  clientPackets,
  encodeAnswer,
  encodeException,
  encodePacket,
  encodeServerHello,
  hasSerializationFlags,
  type NativeQuery,
  newestRevision,
  oldestRevision,
  readClientHello,
  readNoData,
  readQuery,
  skipAddendum,
} from './native-packets.ts'
import {
  createNativeReader,
  NativeProtocolError,
  type NativeReader,
  StreamEndedError,
} from './native-reader.ts'

export type NativeProxyDeps = QueryDeps & {
  sendMaxMs: number
  /** The tenant of the analyst who signs in, or null. */
  findTenant: (login: { user: string; password: string }) => Promise<string | null>
  notSignedIn: Refusal
}

export type NativeProxy = { port: number; close: () => Promise<void> }

/** Of all tenants; of one at most a quarter, so that none takes the others' places. */
const connectionsMax = 64
const connectionsPerTenant = 16
const greetingMaxMs = 10_000
/** A connection without a query is closed after this. */
const idleMaxMs = 10 * 60_000

/** @param port 0 takes a free port of 127.0.0.1 */
export async function openNativeProxy(deps: NativeProxyDeps, port: number): Promise<NativeProxy> {
  const sockets = new Set<Socket>()
  const perTenant = new Map<string, number>()
  const server = createServer({ noDelay: true }, (client) => {
    sockets.add(client)
    client.on('error', () => undefined)
    client.once('close', () => sockets.delete(client))
    serve(deps, client, perTenant)
      .catch((error: unknown) => endWith(deps, client, error))
      .finally(() => client.destroySoon())
  })
  server.maxConnections = connectionsMax
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Sends and counts why a connection ends, unless the client ended it. */
function endWith({ countFailure }: NativeProxyDeps, client: Socket, error: unknown): void {
  if (error instanceof StreamEndedError || client.destroyed) return
  const isWrong = error instanceof NativeProtocolError
  countFailure(isWrong ? 'request' : 'engine_unreachable')
  const refusal = isWrong
    ? { ...wrongPacket, text: `Not understood: ${error.message}` }
    : unreachable(error)
  client.write(encodeException(refusal))
}

/** One connection, until it ends. */
async function serve(
  deps: NativeProxyDeps,
  client: Socket,
  perTenant: Map<string, number>,
): Promise<void> {
  const greeting = setTimeout(() => client.destroy(), greetingMaxMs)
  client.once('close', () => clearTimeout(greeting))
  const from = createNativeReader(client)
  const hello = await readClientHello(from)
  const tenantId = await deps.findTenant(hello)
  const count = tenantId === null ? 0 : (perTenant.get(tenantId) ?? 0)
  if (tenantId === null || count >= connectionsPerTenant || hello.revision < oldestRevision) {
    deps.countFailure(tenantId === null ? 'authentication' : 'request')
    return void client.write(encodeException(toGreetingRefusal(deps, tenantId, hello)))
  }
  perTenant.set(tenantId, count + 1)
  try {
    const revision = Math.min(hello.revision, newestRevision)
    client.write(encodeServerHello(revision))
    await skipAddendum(from, revision)
    clearTimeout(greeting)
    await answerPackets(deps, { client, from, tenantId, revision, database: hello.database })
  } finally {
    const left = perTenant.get(tenantId)! - 1
    if (left === 0) perTenant.delete(tenantId)
    else perTenant.set(tenantId, left)
  }
}

function toGreetingRefusal(
  { notSignedIn }: NativeProxyDeps,
  tenantId: string | null,
  { revision }: ClientHello,
): Refusal {
  if (tenantId === null) return notSignedIn
  return revision < oldestRevision ? tooOld : tooManyConnections
}

type Session = {
  client: Socket
  from: NativeReader
  tenantId: string
  revision: number
  database: string
}

/** Reads what the client sends, one packet after another, until it leaves. */
async function answerPackets(deps: NativeProxyDeps, session: Session): Promise<void> {
  const { client, from, revision } = session
  client.setTimeout(idleMaxMs, () => client.destroy())
  let next = from.varint()
  for (;;) {
    const packet = await next
    if (packet === clientPackets.query) {
      const query = await readQuery(from, revision)
      if (query.isCompressed) throw new NativeProtocolError('compression, which is not needed here')
      if ((await from.varint()) !== clientPackets.data) throw new NativeProtocolError('no block')
      await readNoData(from)
      // While the query runs, the next packet can cancel it, and the end of the connection too.
      next = from.varint()
      client.setTimeout(0)
      await answerQuery(deps, session, query, next)
      client.setTimeout(idleMaxMs)
      continue
    }
    if (packet === clientPackets.ping) await write(client, encodePacket('pong'))
    else if (packet !== clientPackets.cancel) {
      throw new NativeProtocolError(`a packet of kind ${packet}`)
    }
    next = from.varint()
  }
}

async function answerQuery(
  deps: NativeProxyDeps,
  session: Session,
  query: NativeQuery,
  next: Promise<number>,
): Promise<void> {
  const { client, tenantId, revision } = session
  const leave = new AbortController()
  let isCancelled = false
  next.then(
    (packet) => {
      isCancelled = packet === clientPackets.cancel
      if (isCancelled) leave.abort()
    },
    () => leave.abort(),
  )
  let hasAnswer = false
  const fail = (reason: FailureReason, refusal: Refusal) => {
    deps.countFailure(leave.signal.aborted ? 'client_left' : reason)
    hasAnswer = true
    client.write(encodeException(isCancelled ? cancelled : refusal))
  }
  const request = toRequest(session, query)
  if (!request.ok) return fail('request', request.refusal)
  // The permit lasts until the answer is sent, because it is kept in memory until then.
  const answered = Promise.withResolvers<void>()
  leave.signal.addEventListener('abort', () => answered.resolve(), { once: true })
  const analystQuery = { tenantId, parsed: request.parsed, headers: {} }
  await runQueryFor(deps, analystQuery, {
    hasLeft: () => leave.signal.aborted,
    onLeave: (stop) => leave.signal.addEventListener('abort', stop, { once: true }),
    send: (answer) => {
      hasAnswer = true
      answered.resolve(send(client, toPackets(answer, revision), deps.sendMaxMs))
    },
    fail: (reason, refusal) => {
      fail(reason, refusal)
      answered.resolve()
    },
    isAnswered: answered.promise,
  })
  if (isCancelled && !hasAnswer) client.write(encodeException(cancelled))
}

/** The query as a request over HTTP, which is then judged like any other. */
function toRequest({ database, revision }: Session, query: NativeQuery) {
  const url = new URL('http://analysts/')
  const set = (name: string, value: string) => url.searchParams.append(name, value)
  for (const [name, value] of query.settings) set(name, value)
  for (const [name, value] of query.parameters) set(`param_${name}`, value.replace(/^'|'$/g, ''))
  if (database !== '') set('database', database)
  set('default_format', nativeFormat)
  set('client_protocol_version', String(revision))
  // Drivers know texts; few know the type JSON.
  set('output_format_native_write_json_as_string', '1')
  return parseAnalystRequest(url, query.text)
}

const nativeFormat = 'Native'

function toPackets({ status, headers, body }: Answer, revision: number): Buffer[] {
  if (status !== 200) return [encodeException(toRefusal(body.toString()))]
  const format = headers['x-clickhouse-format']
  if (format !== undefined && format !== nativeFormat) return [encodeException(ownFormat)]
  try {
    return encodeAnswer(splitBlocks(body, hasSerializationFlags(revision)))
  } catch (error) {
    if (!(error instanceof NativeProtocolError)) throw error
    return [encodeException({ ...noSuchType, text: `${noSuchType.text}: ${error.message}` })]
  }
}

/** The engine's text of an error: `Code: 62. DB::Exception: ... (SYNTAX_ERROR) (version 26.7)`. */
function toRefusal(text: string): Refusal {
  const [head = '', code = '0'] = /^Code: (\d+)\. DB::Exception: /.exec(text) ?? []
  const name = /\(([A-Z_0-9]+)\)(?: \(version [^)]*\))?\s*$/.exec(text)?.[1] ?? 'UNKNOWN'
  const end = text.lastIndexOf(`. (${name})`)
  const message = text.slice(head.length, end === -1 ? undefined : end)
  return { status: 500, code: Number(code), name, text: message }
}

/** Sends packets, and closes the connection when the client takes too long to read them. */
async function send(client: Socket, packets: readonly Buffer[], maxMs: number): Promise<void> {
  const timer = setTimeout(() => client.destroy(), maxMs)
  for (const packet of packets) await write(client, packet)
  clearTimeout(timer)
}

/** Writes no faster than the client reads, so that what it leaves unread takes little memory. */
async function write(client: Socket, bytes: Buffer): Promise<void> {
  if (client.destroyed || client.write(bytes)) return
  await new Promise<void>((resolve) => {
    const go = () => {
      client.off('drain', go).off('close', go)
      resolve()
    }
    client.once('drain', go).once('close', go)
  })
}

const wrongPacket = { status: 400, code: 99, name: 'UNKNOWN_PACKET_FROM_CLIENT' } as const

const cancelled: Refusal = {
  ...wrongPacket,
  code: 394,
  name: 'QUERY_WAS_CANCELLED',
  text: 'Query was cancelled',
}
const tooOld: Refusal = {
  ...wrongPacket,
  text: `The client is too old: revision ${oldestRevision} of the protocol is the oldest`,
}
const tooManyConnections: Refusal = {
  ...wrongPacket,
  code: 202,
  name: 'TOO_MANY_SIMULTANEOUS_QUERIES',
  text: 'Too many connections of this tenant',
}
const ownFormat: Refusal = {
  ...wrongPacket,
  code: 73,
  name: 'UNKNOWN_FORMAT',
  text: 'Leave FORMAT out: a client of the native protocol formats by itself',
}
const noSuchType: Refusal = {
  ...wrongPacket,
  code: 48,
  name: 'NOT_IMPLEMENTED',
  text: 'Name another type, or use HTTP',
}
