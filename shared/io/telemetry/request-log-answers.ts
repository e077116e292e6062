/**
 * The edge's side of the request log: it answers the queries of consoles alone. An answer holds ids
 * of devices, so a query without a proof gets none.
 */
import {
  requestLogAnswerSubject,
  requestLogQuerySubject,
} from '#shared/core/telemetry/nats-names.ts'
import {
  type RequestLogAnswer,
  requestLogAnswerContext,
  requestLogQueryContext,
  requestLogQuerySchema,
} from '#shared/core/telemetry/request-log.ts'
import { attachProof, type Prover, splitProof } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Log } from '#shared/io/process/log.ts'

type AnswerOptions = {
  nats: Nats
  /** Of the purpose `request log`. */
  prover: Prover
  log: Log
  /** The id under which this edge is announced. */
  edgeId: () => string
  /** What this edge remembers of a tenant. */
  read: (tenantId: string) => Omit<RequestLogAnswer, 'edge_id'>
  /** Forgets these devices of a tenant, or all of it. */
  forget: (tenantId: string, deviceIds: readonly string[] | null) => void
}

/** Answers until it is closed, also after reconnections. */
export function answerRequestLogQueries(options: AnswerOptions): { close: () => void } {
  const { nats, prover, log } = options
  const answer = (whole: string): void => {
    const { proof, text } = splitProof(whole)
    if (!prover.isProven(proof, requestLogQueryContext, text)) return
    const query = requestLogQuerySchema.parse(JSON.parse(text))
    if (query.forget !== undefined) options.forget(query.tenant_id, query.forget.device_ids)
    const remembered = options.read(query.tenant_id)
    const answered = JSON.stringify({ edge_id: options.edgeId(), ...remembered })
    nats.connection.publish(
      requestLogAnswerSubject(query.query_id),
      attachProof(prover, requestLogAnswerContext(query), answered),
    )
  }
  const subscription = nats.connection.subscribe(requestLogQuerySubject, {
    callback: (error, message) => {
      try {
        if (error === null) answer(message.string())
      } catch (failure) {
        log.debug({ err: failure }, 'a query for the request log was not answered')
      }
    },
  })
  return { close: () => subscription.unsubscribe() }
}
