/**
 * The requests of a connection, one after another: which may be served, which is refused before any
 * route sees it, and what Node cannot read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipelinedRequestsMax } from '#shared/core/base/limits/http.ts'
import {
  Problem,
  type ProblemCode,
  problemStatus,
  toProblemBody,
} from '#shared/core/http/problem.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import type { ClientAddresses } from '../client-address.ts'
import { problemType, toRequestId, toUnreadable, writeProblem } from '../problem-answers.ts'
import type { RefusalLog } from '../refusal-log.ts'
import {
  type FramingFault,
  type FramingReason,
  findHeadFault,
  framingFaults,
  framingReasons,
  watchChunks,
} from './request-framing.ts'
import { isEnding, isStopped, serveNoMore, stopReading } from './stop-reading.ts'

/** The responses that a connection waits for, in order. */
const awaited = new WeakMap<Socket, ServerResponse[]>()

/**
 * Whether a request may be served. A request behind one that ends its connection can get no
 * response, so it is ignored. One with an unclear or absurd framing is refused and ends it.
 */
export function takeTurn(
  request: IncomingMessage,
  response: ServerResponse,
  shell: Shell,
): boolean {
  const { socket, headers } = request
  if (isEnding(socket)) {
    stopReading(socket)
    return false
  }
  const before = findUnanswered(socket)
  before.push(response)
  const isFlood = before.length > pipelinedRequestsMax
  const fault = findHeadFault(request) ?? (isFlood ? framingFaults.pipelined : null)
  if (fault !== null) {
    refuseFraming(request, response, fault, shell)
    return false
  }
  const wanted = (headers.connection ?? '').toLowerCase()
  const keeps = request.httpVersion === '1.0' ? wanted === 'keep-alive' : wanted !== 'close'
  if (!keeps) serveNoMore(socket)
  else if (shell.isOver(socket)) {
    serveNoMore(socket)
    response.setHeader('connection', 'close')
  }
  if (headers['transfer-encoding'] !== undefined) {
    watchChunks(request, () => {
      shell.countFraming('chunks')
      endWith(response)
    })
  }
  return true
}

/** Ends the connection with a response, which may have begun. */
function endWith(response: ServerResponse): void {
  if (response.headersSent) response.once('finish', () => response.req.socket.destroySoon())
  else response.setHeader('connection', 'close')
}

/** The responses that a connection waits for. They end in order. */
function findUnanswered(socket: Socket): ServerResponse[] {
  const responses = awaited.get(socket)
  if (responses === undefined) {
    const none: ServerResponse[] = []
    awaited.set(socket, none)
    return none
  }
  while (responses[0]?.writableFinished === true) responses.shift()
  return responses
}

/** What requests need that are answered before fastify gets them. */
export type Shell = {
  /** Whether the time of a stranger's connection is over. */
  isOver: (socket: Socket) => boolean
  refusals: RefusalLog
  addresses: ClientAddresses
  countFraming: (reason: FramingReason) => void
}

/** Refuses a request for its head. What follows it is not read. */
function refuseFraming(
  request: IncomingMessage,
  response: ServerResponse,
  { reason, problem }: FramingFault,
  { refusals, addresses, countFraming }: Shell,
): void {
  countFraming(reason)
  stopReading(request.socket)
  const requestId = toRequestId(request.headers['x-request-id'])
  const { code } = problem
  const method = request.method ?? 'unknown'
  const source = addresses.of(request)
  const status = problemStatus(code)
  refusals({ requestId, status, code, method, route: 'unknown', source })
  response.setHeader('connection', 'close')
  writeProblem(response, problem, requestId)
}

/** The state of a connection, by the requests whose head is complete. */
export function stateOf(socket: Socket): 'idle' | 'receiving' | 'answering' {
  const pending = findUnanswered(socket)
  if (pending.length === 0) return 'idle'
  return pending.some(({ req }) => req.complete) ? 'answering' : 'receiving'
}

/** Refuses every expectation but `100-continue`, which Node handles. */
export function refuseExpectation(
  request: IncomingMessage,
  response: ServerResponse,
  shell: Shell,
): void {
  if (!takeTurn(request, response, shell)) return
  const problem = new Problem('expectation_failed', 'Only 100-continue can be expected.')
  refuseFraming(request, response, { reason: 'expectation', problem }, shell)
}

export function createFramingCounter(metrics: Metrics): (reason: FramingReason) => void {
  const refused = metrics.counter<'reason'>(
    'di_http_framing_refused_total',
    'Requests refused for their framing, by reason: their connections are ended',
    ['reason'],
  )
  startAtZero(
    refused,
    framingReasons.map((reason) => ({ reason })),
  )
  return (reason) => refused.inc({ reason })
}

const unreadableCodes: Record<string, ProblemCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/**
 * Handles requests that Node refuses: it counts them, responds and closes the connection. Responses
 * to earlier requests of the connection are sent first: they may confirm that an event is stored.
 */
export function createClientErrorHandler(
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
    const source = socket.remoteAddress ?? 'unknown'
    refusals({ requestId, status, code, method: 'unknown', route: 'unknown', source })
    stopReading(socket)
    socket.write(
      `HTTP/1.1 ${status} Error\r\ncontent-type: ${problemType}\r\n` +
        `x-request-id: ${requestId}\r\ncache-control: no-store\r\nconnection: close\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    socket.destroySoon()
  }
  return (error, socket) => {
    // It is being ended, and has its answer.
    if (isStopped(socket) && error.code !== 'ECONNRESET') return
    if (error.code === 'ECONNRESET' || !socket.writable) {
      unreadable.inc({ code: 'cut_off' })
      socket.destroy()
      return
    }
    const code = unreadableCodes[error.code ?? ''] ?? 'malformed_request'
    unreadable.inc({ code })
    serveNoMore(socket)
    // An incomplete request is the refused one itself.
    const before = awaited.get(socket)?.findLast(({ req, writableFinished }) => {
      return req.complete && !writableFinished
    })
    if (before === undefined) refuse(code, socket)
    else before.once('finish', () => refuse(code, socket))
  }
}
