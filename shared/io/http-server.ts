/**
 * The HTTP shell every process shares: request ids, RFC 9457 problems for every failure (also the
 * ones fastify and Node raise before a route runs), health, readiness and metrics, and bounds on
 * slow clients.
 */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
} from 'fastify'
import { bodyBytesMax, retryAfterSeconds } from '#shared/core/limits.ts'
import { Problem, type ProblemCode, problemStatus, toProblemBody } from '#shared/core/problem.ts'
import type { Listen } from './config.ts'
import type { Log } from './log.ts'
import { latencyBucketsSeconds, type Metrics } from './metrics.ts'

/** One dependency's state for `/readyz`; null when it is fine, else what is missing. */
export type ReadyCheck = () => Promise<string | null> | string | null

export type HttpServerOptions = {
  log: Log
  metrics: Metrics
  /** Named checks of what this process needs to do its job. */
  readyChecks: Record<string, ReadyCheck>
  stopping: () => boolean
  bodyBytesMax?: number
}

const problemType = 'application/problem+json; charset=utf-8'

/** A request id: what a caller sent when it is harmless to repeat, else a fresh one. */
export function toRequestId(header: string | string[] | undefined): string {
  if (typeof header === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(header)) return header
  return `req_${randomBytes(12).toString('base64url')}`
}

/** Sends a problem; the one way any error leaves a process. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const status = problemStatus(problem.code)
  if (problem.retryAfterSeconds !== undefined) {
    reply.header('retry-after', String(problem.retryAfterSeconds))
  }
  if (problem.code === 'unauthorized') reply.header('www-authenticate', 'Bearer')
  return reply
    .code(status)
    .header('content-type', problemType)
    .send(JSON.stringify(toProblemBody(problem, reply.request.id)))
}

/**
 * Makes a server with the shared routes and error handling; the caller adds its own routes.
 */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { log, metrics } = options
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    disableRequestLogging: true,
    requestIdHeader: false,
    genReqId: (request) => toRequestId(request.headers['x-request-id']),
    bodyLimit: options.bodyBytesMax ?? bodyBytesMax,
    // Fastify turns Node's own limits off; a slow client gets ten seconds for a whole request.
    requestTimeout: 10_000,
    keepAliveTimeout: 75_000,
    http: { headersTimeout: 5_000, connectionsCheckingInterval: 1_000 },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { maxParamLength: 2_048 },
    clientErrorHandler,
    frameworkErrors: (error, _request, reply) => {
      sendProblem(reply as FastifyReply, toProblem(error, log))
    },
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error, request.log)
    return sendProblem(reply, problem)
  })
  app.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, new Problem('not_found', 'There is nothing at this address.')),
  )
  addObservation(app, metrics)
  addHealth(app, options)
  return app
}

function addObservation(app: FastifyInstance, metrics: Metrics): void {
  const seconds = metrics.histogram(
    'di_http_request_seconds',
    'HTTP requests by route and status',
    {
      buckets: latencyBucketsSeconds,
      labels: ['method', 'route', 'status'],
    },
  )
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown'
    seconds.observe(
      { method: request.method, route, status: String(reply.statusCode) },
      reply.elapsedTime / 1000,
    )
  })
}

function addHealth(app: FastifyInstance, options: HttpServerOptions): void {
  app.get('/healthz', { schema: { hide: true } as object }, async () => ({ status: 'ok' }))
  app.get('/readyz', { schema: { hide: true } as object }, async (_request, reply) => {
    const missing: Record<string, string> = {}
    if (options.stopping()) missing.process = 'is stopping'
    await Promise.all(
      Object.entries(options.readyChecks).map(async ([name, check]) => {
        const fault = await withLimit(check)
        if (fault !== null) missing[name] = fault
      }),
    )
    const ready = Object.keys(missing).length === 0
    return reply
      .code(ready ? 200 : 503)
      .send(ready ? { status: 'ready' } : { status: 'not_ready', missing })
  })
  app.get('/metrics', { schema: { hide: true } as object }, async (_request, reply) =>
    reply
      .header('content-type', options.metrics.registry.contentType)
      .send(await options.metrics.registry.metrics()),
  )
}

/** A check that hangs is a dependency that does not answer. */
async function withLimit(check: ReadyCheck): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('does not answer'), 1_000)
  })
  try {
    return await Promise.race([Promise.resolve(check()), limit])
  } catch {
    return 'cannot be reached'
  } finally {
    clearTimeout(timer)
  }
}

const codeOfFastify: Record<string, ProblemCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_body',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_body',
  FST_ERR_BAD_URL: 'malformed_request',
}

/**
 * Any error as a problem. What is not meant for clients becomes a plain 500, logged with its cause.
 */
export function toProblem(error: unknown, log: Log | { error: Log['error'] }): Problem {
  if (error instanceof Problem) {
    if (problemStatus(error.code) >= 500) log.error({ err: error.cause ?? error }, error.message)
    return error
  }
  const fastifyError = error as Partial<FastifyError>
  const code = codeOfFastify[fastifyError.code ?? '']
  if (code === 'body_too_large') return new Problem(code, 'The body is larger than is accepted.')
  if (code !== undefined) return new Problem(code, 'The request cannot be read.')
  const status = fastifyError.statusCode
  if (status !== undefined && status >= 400 && status < 500) {
    return new Problem('malformed_request', 'The request cannot be read.')
  }
  log.error({ err: error }, 'a request failed')
  return new Problem('internal_error', 'The request could not be processed.', { cause: error })
}

/** What Node refuses before there is a request: answered by hand, then the connection ends. */
function clientErrorHandler(
  this: unknown,
  error: NodeJS.ErrnoException,
  socket: { writable: boolean; write: (text: string) => void; destroy: () => void },
): void {
  const codes: Record<string, ProblemCode> = {
    HPE_HEADER_OVERFLOW: 'headers_too_large',
    ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  }
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const requestId = toRequestId(undefined)
  const problem = new Problem(
    codes[error.code ?? ''] ?? 'malformed_request',
    'The request cannot be read.',
  )
  const body = JSON.stringify(toProblemBody(problem, requestId))
  socket.write(
    `HTTP/1.1 ${problemStatus(problem.code)} Error\r\ncontent-type: ${problemType}\r\n` +
      `x-request-id: ${requestId}\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  socket.destroy()
}

/** A 503 that says when to come back. */
export function unavailable(detail: string, cause?: unknown): Problem {
  return new Problem('unavailable', detail, {
    retryAfterSeconds,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Listens and returns the address in use, for logs and port 0. */
export async function listen(app: FastifyInstance, { host, port }: Listen): Promise<string> {
  const url = await app.listen({ host, port, backlog: 2_048 })
  const server: Server = app.server
  const address = server.address()
  return typeof address === 'object' && address !== null ? `http://${host}:${address.port}` : url
}
