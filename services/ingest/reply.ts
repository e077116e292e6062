/**
 * The two ways an answer leaves an edge: over Node's response, and as one write on a connection
 * that was read without Node's server. Both say the same, header by header.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { type Problem, problemStatus, toProblemBody } from '#shared/core/problem.ts'
import type { RateLimitFields } from '#shared/core/rate-limit.ts'
import { keepAliveTimeoutMs, problemType, writeProblem } from '#shared/io/http-server.ts'
import { answerPlain, type PlainConnection } from '#shared/io/plain-connections.ts'

/** What an answer says beside its status and body. */
export type ReplyMeta = {
  requestId: string
  rateLimit: RateLimitFields | null
  /** Whether the connection is to end with it. */
  close: boolean
}

/** Where the answer to one submission goes: either of the two. */
export type Reply = ServerResponse | PlainConnection

const answerType = 'application/json; charset=utf-8'

/** @param answer ASCII throughout: its characters are its bytes */
export function replyAccepted(reply: Reply, answer: string, meta: ReplyMeta): void {
  const { requestId, rateLimit, close } = meta
  if (!('setHeader' in reply)) {
    const head = toHead(200, { type: answerType, bytes: answer.length }, meta, reply)
    answerPlain(reply, `${head}\r\n${answer}`, 'latin1')
    return
  }
  setCommon(reply, rateLimit, close)
  reply.writeHead(200, [
    'content-type',
    answerType,
    'content-length',
    String(answer.length),
    'x-request-id',
    requestId,
  ])
  reply.end(answer, 'latin1')
}

export function replyProblem(reply: Reply, problem: Problem, meta: ReplyMeta): void {
  const { requestId, rateLimit, close } = meta
  if ('setHeader' in reply) {
    setCommon(reply, rateLimit, close)
    writeProblem(reply, problem, requestId)
    return
  }
  const body = JSON.stringify(toProblemBody(problem, requestId))
  const status = problemStatus(problem.code)
  const { retryAfterSeconds } = problem
  const retry = retryAfterSeconds === undefined ? '' : `retry-after: ${retryAfterSeconds}\r\n`
  const bytes = Buffer.byteLength(body)
  const head = toHead(status, { type: problemType, bytes }, meta, reply)
  answerPlain(reply, `${head}${retry}\r\n${body}`, 'utf8')
}

/** Before the head is written; only tenants with a rate pay for theirs. */
function setCommon(reply: ServerResponse, rateLimit: RateLimitFields | null, close: boolean): void {
  if (close) reply.setHeader('connection', 'close')
  if (rateLimit === null) return
  reply.setHeader('ratelimit-policy', rateLimit.policy)
  reply.setHeader('ratelimit', rateLimit.limit)
}

const keptAlive = `connection: keep-alive\r\nkeep-alive: timeout=${keepAliveTimeoutMs / 1_000}\r\n`
const closed = 'connection: close\r\n'

/** The lines before the body, all but the empty one. */
function toHead(
  status: number,
  body: { type: string; bytes: number },
  { requestId, rateLimit, close }: ReplyMeta,
  connection: PlainConnection,
): string {
  if (close) connection.closing = true
  const rate =
    rateLimit === null
      ? ''
      : `ratelimit-policy: ${rateLimit.policy}\r\nratelimit: ${rateLimit.limit}\r\n`
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: ${body.type}\r\n` +
    `content-length: ${body.bytes}\r\nx-request-id: ${requestId}\r\n${rate}` +
    `date: ${toDate(Date.now())}\r\n${connection.closing ? closed : keptAlive}`
  )
}

let dateSecond = 0
let date = ''

/** Made once a second. */
function toDate(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000)
  if (second !== dateSecond) {
    dateSecond = second
    date = new Date(second * 1_000).toUTCString()
  }
  return date
}
