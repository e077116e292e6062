/** Answers with problems, from fastify's routes and from what runs before them. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import {
  Problem,
  type ProblemCode,
  type ProblemDetail,
  problemStatus,
  type RefusedRequest,
  toProblemBody,
  type UnstoredBatch,
} from '#shared/core/http/problem.ts'
import { endIfUnread } from './incoming/stop-reading.ts'

export const problemType = 'application/problem+json; charset=utf-8'

/**
 * @param header `X-Request-Id` of the request
 * @returns the header's value if it is a harmless token, else a random id
 */
export function toRequestId(header: string | string[] | undefined): string {
  if (typeof header === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(header)) return header
  return `req_${randomUUID()}`
}

/** The problem codes of responses, for the log. */
export const refusedWith = new WeakMap<IncomingMessage, ProblemCode>()

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

/**
 * Sends a problem in response to a request that fastify did not get. It ends the connection when
 * the body was not read to its end.
 */
export function writeProblem(
  response: ServerResponse,
  problem: Problem,
  requestId: string,
  refused?: RefusedRequest | UnstoredBatch,
): void {
  endIfUnread(response)
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

/** The unreadable part of a request, for responses with a 400. */
const unreadableParts: Partial<Record<ProblemCode, ProblemDetail>> = {
  malformed_request: {
    path: 'request',
    message: 'is not valid HTTP, or its address cannot be decoded',
  },
}

/** A request that cannot be read. */
export function toUnreadable(code: ProblemCode): Problem {
  const part = unreadableParts[code]
  const more = part === undefined ? {} : { errors: [part] }
  const detail =
    code === 'unsupported_media_type'
      ? 'Send Content-Type: application/json.'
      : 'The request cannot be read.'
  return new Problem(code, detail, more)
}
