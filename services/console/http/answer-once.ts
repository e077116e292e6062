/** Changes by operators with an `Idempotency-Key`. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { readOnceCall, sendOnce } from '#shared/io/http/idempotency.ts'
import { answerOnce } from '#shared/io/http/idempotent-answers.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type Principal, tenantsOf } from './admin-app.ts'

/**
 * Makes a change, once for an `Idempotency-Key`.
 * @param work makes the change on the connection that it is given
 * @throws Problem idempotency_key_refused, idempotency_key_in_flight, idempotency_key_reused
 */
export async function changeOnce<T>(
  postgres: Postgres,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  work: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const principal: Principal | null = request.principal
  const caller = { tenantId: '', actor: actorOf(principal), sees: tenantsOf(principal) }
  const call = readOnceCall(request, caller)
  return call === null ? work(postgres) : sendOnce(reply, await answerOnce(postgres, call, work))
}
