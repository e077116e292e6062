/** Writes the response to a submission. */
import type { ServerResponse } from 'node:http'
import type { Problem, RefusedRequest, UnstoredBatch } from '#shared/core/http/problem.ts'
import type { RateLimitFields } from '#shared/core/http/rate-limit.ts'
import { writeProblem } from '#shared/io/http/problem-answers.ts'

/** Headers of a response. */
type ReplyMeta = {
  requestId: string
  rateLimit: RateLimitFields | null
  /** Whether the connection ends with the response. */
  close: boolean
}

const jsonType = 'application/json; charset=utf-8'

/** Sends a 200. @param answer JSON in ASCII, so its characters are its bytes */
export function replyAccepted(response: ServerResponse, answer: string, meta: ReplyMeta): void {
  setCommonHeaders(response, meta)
  response.writeHead(200, [
    'content-type',
    jsonType,
    'content-length',
    String(answer.length),
    'x-request-id',
    meta.requestId,
    'cache-control',
    'no-store',
  ])
  response.end(answer, 'latin1')
}

/** Sends a problem with its status. */
export function replyProblem(
  response: ServerResponse,
  problem: Problem,
  meta: ReplyMeta & { request: RefusedRequest | UnstoredBatch | undefined },
): void {
  setCommonHeaders(response, meta)
  // Also ends the connection when the body was not read to its end.
  writeProblem(response, problem, meta.requestId, meta.request)
}

/** Call it before the head is written. */
function setCommonHeaders(response: ServerResponse, { rateLimit, close }: ReplyMeta): void {
  if (close) response.setHeader('connection', 'close')
  if (rateLimit === null) return
  response.setHeader('ratelimit-policy', rateLimit.policy)
  response.setHeader('ratelimit', rateLimit.limit)
}
