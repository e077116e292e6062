/**
 * The `Idempotency-Key` of a POST. A route with `schema.idempotency` keeps its answers, or refuses
 * the header when they hold a secret. Other calls change the same when they are repeated.
 */
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#shared/core/http/problem.ts'
import type { OnceAnswer, OnceCall } from '#shared/io/http/idempotent-answers.ts'
import { type Json, toHeaderRef } from './openapi-problems.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** `kept`: the handler answers once for a key. `refused`: the answer holds a secret. */
    idempotency?: 'kept' | 'refused'
  }
}

const header = 'idempotency-key'
const keyPattern = /^[!-~]{1,255}$/

/** Adds the hook that refuses the header where no answer is kept for it. */
export function addIdempotency(scope: FastifyInstance): void {
  scope.addHook('preHandler', async (request) => {
    if (request.routeOptions.schema?.idempotency !== 'refused') return
    refuseKey(request, 'the answer holds a secret, which is not stored')
  })
}

/** @throws Problem idempotency_key_refused when a call that cannot be made once has the header */
export function refuseKey({ headers }: FastifyRequest, why: string): void {
  if (headers[header] !== undefined) throw refuse(`is not accepted here: ${why}`)
}

/**
 * The call of a request with the header; null without it.
 * @param caller whose key it is, and what they may see: a repeat must see as much
 * @throws Problem idempotency_key_refused
 */
export function readOnceCall(
  request: FastifyRequest,
  caller: { tenantId: string; actor: string; sees?: unknown },
): OnceCall | null {
  const key = request.headers[header]
  if (key === undefined) return null
  if (typeof key !== 'string' || !keyPattern.test(key)) {
    throw refuse('must be 1 to 255 visible ASCII characters')
  }
  const { method, url, body } = request
  const asked = JSON.stringify([method, url, body ?? null, caller.sees ?? null])
  const { tenantId, actor } = caller
  return { tenantId, actor, key, requestSha256: hash('sha256', asked, 'buffer') }
}

const refuse = (message: string): Problem =>
  new Problem('idempotency_key_refused', 'The idempotency key cannot be used.', {
    errors: [{ path: 'Idempotency-Key', message }],
  })

/** Marks a repeated answer as such. */
export function sendOnce<T>(reply: FastifyReply, { answer, replayed }: OnceAnswer<T>): T {
  if (replayed) reply.header('idempotent-replayed', 'true')
  return answer
}

/** The parameter and the header of documents. */
export const idempotencyKeyParameter: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Any text that is new for each change, such as a UUID. A repeat of the call within a day gets the first answer and changes nothing. An error keeps no answer.',
  schema: { type: 'string', pattern: '^[!-~]{1,255}$', examples: ['6f1b2c1e-8f0e-4f2b-9a53-2b'] },
}
export const replayedHeaders: Json = {
  IdempotentReplayed: {
    description: '`true` on an answer that was kept for the `Idempotency-Key`.',
    schema: { type: 'string', const: 'true' },
  },
}
export const replayedHeader = { 'Idempotent-Replayed': toHeaderRef('IdempotentReplayed') }
