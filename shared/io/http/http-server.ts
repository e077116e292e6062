/**
 * The base of every public HTTP server: request ids, RFC 9457 problems for every failure (including
 * failures in fastify and Node before a route runs), `/healthz`, and limits for slow clients.
 * Readiness and metrics are on the internal listener (`internal-server.ts`).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
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
  incompleteBodiesBytesMax,
  pathPartCharactersMax,
} from '#shared/core/base/limits/http.ts'
import { Problem, type ProblemCode, problemStatus } from '#shared/core/http/problem.ts'
import { parseQuery } from '#shared/core/http/query-string.ts'
import type { Listen } from '#shared/io/process/config.ts'
import type { Log } from '#shared/io/process/log.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'
import { createClientAddresses } from './client-address.ts'
import { guardConnections } from './connection-guard.ts'
import { addUnroutedAnswers, type UnroutedAnswers } from './http-methods.ts'
import { createBodyBudget } from './incoming/body-budget.ts'
import {
  createClientErrorHandler,
  createFramingCounter,
  refuseExpectation,
  type Shell,
  stateOf,
  takeTurn,
} from './incoming/connection-turns.ts'
import { afterHead, endIfUnread } from './incoming/stop-reading.ts'
import { dropTypeOfNoBody, readBodies } from './json-bodies.ts'
import { refusedWith, sendProblem, toRequestId, toUnreadable } from './problem-answers.ts'
import { createRefusalLog, type RefusalLog } from './refusal-log.ts'

export type HttpServerOptions = UnroutedAnswers & {
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
  /** Overrides the limit, for tests. */
  connectionsMax?: number
}

/** Longer than a load balancer keeps an idle connection, so that the balancer closes it first. */
export const keepAliveTimeoutMs = 75_000
/** How long a client may take to send the last header. */
const headersTimeoutMs = 5_000

/** Limits for slow clients: a complete request in ten seconds, its headers in five. */
const serverLimits = {
  requestTimeout: 10_000,
  headersTimeout: headersTimeoutMs,
  connectionsCheckingInterval: 1_000,
  // `takeTurn` refuses a missing Host, with a problem.
  requireHostHeader: false,
  keepAliveTimeout: keepAliveTimeoutMs,
}

/** Creates a public server with the shared error handling. The caller adds its routes. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { log, direct, metrics } = options
  const observe = createObserver(metrics)
  const refusals = options.refusals ?? createRefusalLog(log)
  const addresses = createClientAddresses(options.trustedProxies ?? [])
  const { rewriteUrl } = options
  const noteOutage = createOutageLog(log)
  const countFraming = createFramingCounter(metrics)
  const shell: Shell = { refusals, addresses, countFraming, isOver: () => false }
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
        if (!takeTurn(request, response, shell)) return
        if (rewriteUrl !== undefined) request.url = rewriteUrl(request.url ?? '/')
        if (direct === undefined || !direct(request, response)) handler(request, response)
      }).on('checkExpectation', (request, response) => refuseExpectation(request, response, shell)),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // `validatorCompiler` checks what the parser returns.
    routerOptions: { maxParamLength: pathPartCharactersMax, querystringParser: parseQuery },
    clientErrorHandler: createClientErrorHandler(metrics, refusals),
    frameworkErrors: (error, request, reply) => {
      const problem = toProblem(error, log, noteOutage)
      endIfUnread(reply.raw)
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
  // One more, so that a request with too many is seen as such.
  app.server.maxHeadersCount = headersCountMax + 1
  const guard = guardConnections(app.server, {
    trusts: addresses.trusts,
    stateOf,
    metrics,
    ...(options.connectionsMax === undefined ? {} : { connectionsMax: options.connectionsMax }),
  })
  shell.isOver = guard.isOver
  readBodies(app, createBodyBudget(incompleteBodiesBytesMax))
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    // A route with a public response sets its own.
    reply.header('cache-control', 'no-store')
    if (options.stopping?.() === true) reply.header('connection', 'close')
    dropTypeOfNoBody(request.raw)
  })
  endUnreadRequests(app)
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.log, noteOutage)
    return sendProblem(reply, problem)
  })
  addUnroutedAnswers(app, sendProblem, options)
  app.addHook('onResponse', async (request, reply) => {
    note(request, reply.statusCode, reply.elapsedTime / 1000)
  })
  app.get('/healthz', { schema: { hide: true } as object }, async () => ({ status: 'ok' }))
  return app
}

/** Ends connections whose requests got their response before their body was read. */
export function endUnreadRequests(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, _payload, done) =>
    afterHead(request.raw, () => {
      endIfUnread(reply.raw)
      done()
    }),
  )
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

type ErrorLog = { error: Log['error'] }

/** How often the cause of an outage is logged; the refusal log has a line for each request. */
const outageEveryMs = 10_000

/** @returns a function that logs a problem's cause, unless one of the same message was just logged */
export function createOutageLog(log: ErrorLog): (problem: Problem) => void {
  // The messages are those in our code.
  const loggedMs = new Map<string, number>()
  return ({ message, cause }) => {
    const nowMs = performance.now()
    if (nowMs - (loggedMs.get(message) ?? Number.NEGATIVE_INFINITY) < outageEveryMs) return
    loggedMs.set(message, nowMs)
    log.error({ err: cause }, message)
  }
}

/**
 * Converts any error to a problem. An unexpected error becomes a 500 and is logged.
 * @param noteOutage called for a problem that a server which is away has caused
 */
export function toProblem(
  error: unknown,
  log: ErrorLog,
  noteOutage = createOutageLog(log),
): Problem {
  if (error instanceof Problem) {
    if (error.code === 'unavailable') {
      // A refusal for lack of capacity has no cause, and the refusal log has a line for it.
      if (error.cause !== undefined) noteOutage(error)
    } else if (problemStatus(error.code) >= 500) {
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
