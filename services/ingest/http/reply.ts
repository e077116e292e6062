/** How an answer to a submission leaves an edge. */
import type { ServerResponse } from 'node:http'
import type { Problem } from '#shared/core/http/problem.ts'
import type { RateLimitFields } from '#shared/core/http/rate-limit.ts'
import { writeProblem } from '#shared/io/http/http-server.ts'

/** What an answer says beside its status and body. */
export type ReplyMeta = {
  requestId: string
  rateLimit: RateLimitFields | null
  /** Whether the connection ends with the answer. */
  close: boolean
}

const answerType = 'application/json; charset=utf-8'

/** @param answer ASCII only: its characters are its bytes */
export function replyAccepted(reply: ServerResponse, answer: string, meta: ReplyMeta): void {
  setCommon(reply, meta)
  reply.writeHead(200, [
    'content-type',
    answerType,
    'content-length',
    String(answer.length),
    'x-request-id',
    meta.requestId,
    'cache-control',
    'no-store',
  ])
  reply.end(answer, 'latin1')
}

export function replyProblem(reply: ServerResponse, problem: Problem, meta: ReplyMeta): void {
  setCommon(reply, meta)
  writeProblem(reply, problem, meta.requestId)
}

/** Before the head is written; only tenants with a rate pay for its headers. */
function setCommon(reply: ServerResponse, { rateLimit, close }: ReplyMeta): void {
  if (close) reply.setHeader('connection', 'close')
  if (rateLimit === null) return
  reply.setHeader('ratelimit-policy', rateLimit.policy)
  reply.setHeader('ratelimit', rateLimit.limit)
}
