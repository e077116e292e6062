/**
 * The base of every public HTTP server: request ids, RFC 9457 problems for every failure (including
 * failures in fastify and Node before a route runs), `/healthz`, and limits for slow clients.
 * Readiness and metrics are on the internal listener (`internal-server.ts`).
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import {
  bodyBytesMax,
  headersCountMax,
  pathPartCharactersMax,
} from '#shared/core/base/limits/http.ts'
import {
  Problem,
  type ProblemCode,
  type ProblemDetail,
  problemStatus,
  type RefusedRequest,
  toProblemBody,
} from '#shared/core/http/problem.ts'
import { parseQuery } from '#shared/core/http/query-string.ts'
import type { Listen } from '#shared/io/process/config.ts'
import type { Log } from '#shared/io/process/log.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'
import { type ClientAddresses, createClientAddresses, toAddress } from './client-address.ts'
import { guardConnections } from './connection-guard.ts'
import { addUnroutedAnswers } from './http-methods.ts'
import { parseJsonBodies } from './json-bodies.ts'
import { createRefusalLog, type RefusalLog } from './refusal-log.ts'

export type HttpServerOptions = {
  log: Log
  metrics: Metrics
  bodyBytesMax?: number
  /**
   * Gets every request before fastify, for the one route whose cost per request matters. Returns
   * whether it handles the request: then it sends the response, with the request id.
   */
  direct?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Turns the address of a request into the one that routes have; it stays as it is by default. */
  rewriteUrl?: (url: string) => string
  /** Trusted proxies, as in `TRUSTED_PROXIES`; none by default. */
  trustedProxies?: readonly string[]
  /** The refusal log, to share it with `direct`. */
  refusals?: RefusalLog
  /** Whether the process is stopping: then every response of a route ends its connection. */
  stopping?: () => boolean
  /** A sentence for people who called an address that does not exist. */
  notFoundHint?: string
  /** Overrides the limit, for tests. */
  connectionsMax?: number
}

/** Longer than a load balancer keeps an idle connection, so that the balancer closes it first. */
export const keepAliveTimeoutMs = 75_000
/** How long a client may take to send the last header. */
const headersTimeoutMs = 5_000

/** Connections that end with a response that is being sent. */
const ending = new WeakSet<Socket>()
/** The responses that a connection waits for, in order. */
const awaited = new WeakMap<Socket, ServerResponse[]>()

/**
 * Whether a request may be served. A request behind one that ends its connection can get no
 * response, so it is ignored. A request must have one Host.
 */
function isNext(request: IncomingMessage, response: ServerResponse, shell: Shell): boolean {
  const { socket, headers, rawHeaders } = request
  if (ending.has(socket)) return false
  const before = awaited.get(socket)?.filter((answer) => !answer.writableFinished) ?? []
  awaited.set(socket, [...before, response])
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host')
  const unclear = hosts.length > 1 || (hosts.length === 0 && request.httpVersion === '1.1')
  const wanted = (headers.connection ?? '').toLowerCase()
  const keeps = request.httpVersion === '1.0' ? wanted === 'keep-alive' : wanted !== 'close'
  if (unclear || !keeps) ending.add(socket)
  else if (shell.isOver(socket)) {
    ending.add(socket)
    response.setHeader('connection', 'close')
  }
  if (!unclear) return true
  response.setHeader('connection', 'close')
  const problem = new Problem('malformed_request', 'The request needs one Host.', {
    errors: [{ path: 'host', message: 'must be sent once' }],
  })
  refuseRaw(request, response, problem, shell)
  return false
}

/** What requests need that are answered before fastify gets them. */
type Shell = {
  /** Whether the time of a stranger's connection is over. */
  isOver: (socket: Socket) => boolean
  refusals: RefusalLog
  addresses: ClientAddresses
}

function refuseRaw(
  request: IncomingMessage,
  response: ServerResponse,
  problem: Problem,
  { refusals, addresses }: Shell,
): void {
  const requestId = toRequestId(request.headers['x-request-id'])
  const { code } = problem
  const method = request.method ?? 'unknown'
  const source = addresses.of(request)
  const status = problemStatus(code)
  refusals({ requestId, status, code, method, route: 'unknown', source })
  writeProblem(response, problem, requestId)
}

/** The state of a connection, by the requests whose head is complete. */
function stateOf(socket: Socket): 'idle' | 'receiving' | 'answering' {
  const pending = awaited.get(socket)?.filter((answer) => !answer.writableFinished) ?? []
  if (pending.length === 0) return 'idle'
  return pending.some(({ req }) => req.complete) ? 'answering' : 'receiving'
}

/** Refuses every expectation but `100-continue`, which Node handles. */
function refuseExpectation(request: IncomingMessage, response: ServerResponse, shell: Shell): void {
  if (!isNext(request, response, shell)) return
  // It is unknown whether a body follows.
  ending.add(request.socket)
  response.setHeader('connection', 'close')
  const problem = new Problem('expectation_failed', 'Only 100-continue can be expected.')
  refuseRaw(request, response, problem, shell)
}

/** Limits for slow clients: a complete request in ten seconds, its headers in five. */
const serverLimits = {
  requestTimeout: 10_000,
  headersTimeout: headersTimeoutMs,
  connectionsCheckingInterval: 1_000,
  // `isNext` refuses a missing Host, with a problem.
  requireHostHeader: false,
  keepAliveTimeout: keepAliveTimeoutMs,
}

const problemType = 'application/problem+json; charset=utf-8'

/**
 * @param header `X-Request-Id` of the request
 * @returns the header's value if it is a harmless token, else a random id
 */
export function toRequestId(header: string | string[] | undefined): string {
  if (typeof header === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(header)) return header
  return `req_${randomUUID()}`
}

/** The problem codes of responses, for the log. */
const refusedWith = new WeakMap<IncomingMessage, ProblemCode>()

/** Sends a problem. Every error response of a fastify route uses it. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const status = problemStatus(problem.code)
  if (problem.retryAfterSeconds !== undefined) {
    reply.header('retry-after', String(problem.retryAfterSeconds))
  }
  if (problem.code === 'unauthorized') reply.header('www-authenticate', 'Bearer')
  refusedWith.set(reply.request.raw, problem.code)
  return (
    reply
      .code(status)
      // Also set here, because fastify can refuse a request before its hooks run.
      .header('x-request-id', reply.request.id)
      .header('cache-control', 'no-store')
      .header('content-type', problemType)
      .send(JSON.stringify(toProblemBody(problem, reply.request.id)))
  )
}

/** Sends a problem in response to a request that fastify did not get. */
export function writeProblem(
  response: ServerResponse,
  problem: Problem,
  requestId: string,
  refused?: RefusedRequest,
): void {
  const body = JSON.stringify(toProblemBody(problem, requestId, refused))
  const headers = [
    'content-type',
    problemType,
    'content-length',
    String(Buffer.byteLength(body)),
    'x-request-id',
    requestId,
    'cache-control',
    'no-store',
  ]
  if (problem.retryAfterSeconds !== undefined) {
    headers.push('retry-after', String(problem.retryAfterSeconds))
  }
  response.writeHead(problemStatus(problem.code), headers)
  response.end(body)
}

/** Creates a public server with the shared error handling. The caller adds its routes. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { log, direct, metrics } = options
  const observe = createObserver(metrics)
  const refusals = options.refusals ?? createRefusalLog(log)
  const addresses = createClientAddresses(options.trustedProxies ?? [])
  const { rewriteUrl } = options
  const shell: Shell = { refusals, addresses, isOver: () => false }
  const note = (request: FastifyRequest, status: number, seconds: number) => {
    const { method, ip: source } = request
    const route = request.routeOptions.url ?? 'unknown'
    observe({ method, route, status }, seconds)
    if (status < 400) return
    const code = refusedWith.get(request.raw) ?? 'unknown'
    refusals({ requestId: request.id, status, code, method, route, source })
  }
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'request_id',
    }),
    requestIdHeader: false,
    genReqId: (request) => toRequestId(request.headers['x-request-id']),
    bodyLimit: options.bodyBytesMax ?? bodyBytesMax,
    // A separate server, because fastify disables Node's limits.
    serverFactory: (handler) =>
      createServer(serverLimits, (request, response) => {
        if (!isNext(request, response, shell)) return
        if (rewriteUrl !== undefined) request.url = rewriteUrl(request.url ?? '/')
        if (direct === undefined || !direct(request, response)) handler(request, response)
      }).on('checkExpectation', (request, response) => refuseExpectation(request, response, shell)),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // `validatorCompiler` checks what the parser returns.
    routerOptions: { maxParamLength: pathPartCharactersMax, querystringParser: parseQuery },
    clientErrorHandler: createClientErrorHandler(metrics, refusals),
    frameworkErrors: (error, request, reply) => {
      const problem = toProblem(error, log)
      sendProblem(reply as FastifyReply, problem)
      note(request, problemStatus(problem.code), 0)
    },
  })
  // In one spelling, whatever a proxy writes: fastify's own would be what stands in the header.
  app.decorateRequest('ip', {
    getter(this: FastifyRequest) {
      return addresses.of(this.raw)
    },
  })
  app.server.maxHeadersCount = headersCountMax
  const guard = guardConnections(app.server, {
    trusts: addresses.trusts,
    stateOf,
    metrics,
    ...(options.connectionsMax === undefined ? {} : { connectionsMax: options.connectionsMax }),
  })
  shell.isOver = guard.isOver
  // No route accepts text: it gets a 415 like any other media type.
  app.removeContentTypeParser('text/plain')
  parseJsonBodies(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    // A route with a public response sets its own.
    reply.header('cache-control', 'no-store')
    if (options.stopping?.() === true) reply.header('connection', 'close')
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.log)
    return sendProblem(reply, problem)
  })
  addUnroutedAnswers(app, sendProblem, options.notFoundHint)
  app.addHook('onResponse', async (request, reply) => {
    note(request, reply.statusCode, reply.elapsedTime / 1000)
  })
  app.get('/healthz', { schema: { hide: true } as object }, async () => ({ status: 'ok' }))
  return app
}

type Observe = (request: { method: string; route: string; status: number }, seconds: number) => void

function createObserver(metrics: Metrics): Observe {
  const histogram = metrics.histogram(
    'di_http_request_seconds',
    'HTTP requests by route and status',
    { buckets: latencyBucketsSeconds, labels: ['method', 'route', 'status'] },
  )
  return ({ method, route, status }, seconds) =>
    histogram.observe({ method, route, status: String(status) }, seconds)
}

const codeOfFastify: Record<string, ProblemCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_BAD_URL: 'malformed_request',
  FST_ERR_MAX_PARAM_LENGTH: 'uri_too_long',
}

/** The unreadable part of a request, for responses with a 400. */
const unreadableParts: Partial<Record<ProblemCode, ProblemDetail>> = {
  malformed_request: {
    path: 'request',
    message: 'is not valid HTTP, or its address cannot be decoded',
  },
}

function toUnreadable(code: ProblemCode): Problem {
  const part = unreadableParts[code]
  const more = part === undefined ? {} : { errors: [part] }
  const detail =
    code === 'unsupported_media_type'
      ? 'Send Content-Type: application/json.'
      : 'The request cannot be read.'
  return new Problem(code, detail, more)
}

/** Converts any error to a problem. An unexpected error becomes a 500 and is logged. */
export function toProblem(error: unknown, log: Log | { error: Log['error'] }): Problem {
  if (error instanceof Problem) {
    // A refusal for lack of capacity has no cause, and the refusal log has a line for it.
    const isRefusal = error.code === 'unavailable' && error.cause === undefined
    if (problemStatus(error.code) >= 500 && !isRefusal) {
      log.error({ err: error.cause ?? error }, error.message)
    }
    return error
  }
  const fastifyError = error as Partial<FastifyError>
  const code = codeOfFastify[fastifyError.code ?? '']
  if (code === 'body_too_large') return new Problem(code, 'The body is larger than is accepted.')
  if (code === 'uri_too_long') return new Problem(code, 'A part of the address is too long.')
  if (code !== undefined) return toUnreadable(code)
  const status = fastifyError.statusCode
  if (status !== undefined && status >= 400 && status < 500) {
    return toUnreadable('malformed_request')
  }
  log.error({ err: error }, 'a request failed')
  return new Problem('internal_error', 'The request could not be processed.', { cause: error })
}

const unreadableCodes: Record<string, ProblemCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/**
 * Handles requests that Node refuses: it counts them, responds and closes the connection. Responses
 * to earlier requests of the connection are sent first: they may confirm that an event is stored.
 */
function createClientErrorHandler(
  metrics: Metrics,
  refusals: RefusalLog,
): (error: NodeJS.ErrnoException, socket: Socket) => void {
  const unreadable = metrics.counter(
    'di_http_unreadable_requests_total',
    'Malformed, slow or disconnected requests, by the code of the response',
    ['code'],
  )
  const refuse = (code: ProblemCode, socket: Socket) => {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const requestId = toRequestId(undefined)
    const problem = toUnreadable(code)
    const body = JSON.stringify(toProblemBody(problem, requestId))
    const status = problemStatus(code)
    const source = toAddress(socket.remoteAddress ?? '') ?? 'unknown'
    refusals({ requestId, status, code, method: 'unknown', route: 'unknown', source })
    socket.write(
      `HTTP/1.1 ${status} Error\r\ncontent-type: ${problemType}\r\n` +
        `x-request-id: ${requestId}\r\ncache-control: no-store\r\nconnection: close\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    socket.destroy()
  }
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      unreadable.inc({ code: 'cut_off' })
      socket.destroy()
      return
    }
    const code = unreadableCodes[error.code ?? ''] ?? 'malformed_request'
    unreadable.inc({ code })
    ending.add(socket)
    // An incomplete request is the refused one itself.
    const before = awaited.get(socket)?.findLast(({ req, writableFinished }) => {
      return req.complete && !writableFinished
    })
    if (before === undefined) refuse(code, socket)
    else before.once('finish', () => refuse(code, socket))
  }
}

/**
 * Listens.
 * @param reusePort whether other processes may listen on the same address
 * @returns the URL in use, also for port 0
 */
export async function listen(
  app: FastifyInstance,
  { host, port }: Listen,
  reusePort = false,
): Promise<string> {
  const url = await app.listen({ host, port, backlog: 2_048, ...(reusePort ? shared : {}) })
  const server: Server = app.server
  const address = server.address()
  return typeof address === 'object' && address !== null
    ? toListenUrl({ host, port: address.port })
    : url
}

/** @returns the URL of an address that is listened on; an IPv6 host gets its brackets back */
export const toListenUrl = ({ host, port }: Listen): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`

/** An option of Node that the types of fastify do not have. */
const shared = { reusePort: true }
