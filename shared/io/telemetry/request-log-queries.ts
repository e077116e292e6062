/**
 * The console's side of the request log: it queries every edge for what it remembers of a tenant.
 * An answer counts with the proof of an edge alone, so no other process can make one up. An edge
 * that does not answer in time is named.
 */
import { randomUUID } from 'node:crypto'
import { requestLogWaitMs } from '#shared/core/base/limits/ingest.ts'
import {
  requestLogAnswerSubject,
  requestLogQuerySubject,
} from '#shared/core/telemetry/nats-names.ts'
import {
  type RequestLogAnswer,
  type RequestLogQuery,
  requestLogAnswerContext,
  requestLogAnswerSchema,
  requestLogQueryContext,
} from '#shared/core/telemetry/request-log.ts'
import { attachProof, type Prover, splitProof } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'

export type RequestLogs = {
  /** One answer of each edge that answered. */
  answers: RequestLogAnswer[]
  /** Expected edges that did not. */
  silent: string[]
}

type QueryOptions = {
  nats: Nats
  /** Of the purpose `request log`. */
  prover: Prover
  tenantId: string
  /** The edges that are announced. */
  edgeIds: readonly string[]
  /** What the edges forget before they answer. */
  forget?: RequestLogQuery['forget']
  waitMs?: number
}

/**
 * Queries all edges at once.
 * @returns once every expected edge has answered, or the time is up
 * @throws when NATS is away
 */
export async function queryRequestLogs(options: QueryOptions): Promise<RequestLogs> {
  const { nats, prover, tenantId, edgeIds, forget, waitMs = requestLogWaitMs } = options
  if (!nats.connected()) throw new Error('NATS is not connected')
  const query: RequestLogQuery = { query_id: randomUUID(), tenant_id: tenantId, forget }
  const answers = new Map<string, RequestLogAnswer>()
  const listSilent = () => edgeIds.filter((edgeId) => !answers.has(edgeId))
  if (edgeIds.length === 0) return { answers: [], silent: [] }
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    const subscription = nats.connection.subscribe(requestLogAnswerSubject(query.query_id), {
      callback: (error, message) => {
        const answer = error === null ? readAnswer(prover, query, message.string()) : null
        if (answer !== null) answers.set(answer.edge_id, answer)
        if (listSilent().length === 0) end()
      },
    })
    const end = () => {
      clearTimeout(timer)
      subscription.unsubscribe()
      resolve()
    }
    timer = setTimeout(end, waitMs)
    const text = JSON.stringify(query)
    nats.connection.publish(
      requestLogQuerySubject,
      attachProof(prover, requestLogQueryContext, text),
    )
  })
  return { answers: [...answers.values()], silent: listSilent() }
}

/** @returns null for what no edge answered to this query */
function readAnswer(
  prover: Prover,
  query: RequestLogQuery,
  whole: string,
): RequestLogAnswer | null {
  const { proof, text } = splitProof(whole)
  if (!prover.isProven(proof, requestLogAnswerContext(query), text)) return null
  const parsed = requestLogAnswerSchema.safeParse(JSON.parse(text))
  return parsed.success ? parsed.data : null
}
