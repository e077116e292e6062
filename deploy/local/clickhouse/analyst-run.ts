// Runs a query of an analyst for a client of either protocol: with a permit of its tenant, after
// the engine's judgement, within its time, and to the end of the engine's work on it.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Permit, TenantSemaphore } from '#shared/io/process/tenant-semaphore.ts'
import {
  type AnalystEngine,
  type AnalystQuery,
  type Answer,
  AnswerTooLarge,
} from './analyst-engine.ts'
import type { Refusal } from './analyst-request.ts'

/** Why a query has no result; the labels of a metric. */
export const failureReasons = [
  'authentication',
  'request',
  'statement',
  'concurrency',
  'time',
  'size',
  'engine_error',
  'engine_unreachable',
  'client_left',
] as const
export type FailureReason = (typeof failureReasons)[number]

export type QueryDeps = {
  semaphore: TenantSemaphore
  engine: AnalystEngine
  queryMaxMs: number
  answerBytesMax: number
  countFailure: (reason: FailureReason) => void
}

export type QueryClient = {
  hasLeft: () => boolean
  /** Calls back once, when the client leaves or has its answer. */
  onLeave: (leave: () => void) => void
  send: (answer: Answer) => void
  /** Refuses and counts. */
  fail: (reason: FailureReason, refusal: Refusal) => void
  /** Resolves when the answer is sent, or the client has left. */
  isAnswered: Promise<void>
}

/** How long a query counts towards the limit of all tenants after its response is known. */
const endingMs = 2_000

/** Releases the permit when the response is sent and the engine has stopped the query. */
export async function runQueryFor(
  deps: QueryDeps,
  query: AnalystQuery,
  client: QueryClient,
): Promise<void> {
  const permit = await deps.semaphore.acquire(query.tenantId)
  if (permit === null) return client.fail('concurrency', tooMany)
  try {
    // The client can leave while it waits.
    if (client.hasLeft()) return deps.countFailure('client_left')
    const refusal = await deps.engine.judge(query)
    if (refusal !== null) return client.fail('statement', refusal)
    if (!client.hasLeft()) await run(deps, query, client, permit)
    await client.isAnswered
  } finally {
    permit.release()
  }
}

async function run(
  deps: QueryDeps,
  query: AnalystQuery,
  client: QueryClient,
  permit: Permit,
): Promise<void> {
  const { engine, answerBytesMax, queryMaxMs } = deps
  const stopping = new AbortController()
  const timer = setTimeout(() => stopping.abort(), queryMaxMs)
  client.onLeave(() => stopping.abort())
  const { answer, ended } = engine.run(query, stopping.signal)
  try {
    const response = await answer
    if (response.status !== 200) deps.countFailure('engine_error')
    client.send(response)
  } catch (error) {
    if (error instanceof AnswerTooLarge) client.fail('size', tooLarge(answerBytesMax))
    else if (stopping.signal.aborted) client.fail('time', tooSlow(queryMaxMs))
    else client.fail('engine_unreachable', unreachable(error))
  } finally {
    clearTimeout(timer)
  }
  await Promise.race([ended, sleep(endingMs)])
  permit.releaseTotal()
  await ended
}

const tooMany: Refusal = {
  status: 503,
  code: 202,
  name: 'TOO_MANY_SIMULTANEOUS_QUERIES',
  text: 'Too many simultaneous queries of this tenant; try again',
}

const tooLarge = (bytes: number): Refusal => ({
  status: 500,
  code: 396,
  name: 'TOO_MANY_ROWS_OR_BYTES',
  text: `Limit for result exceeded, max bytes: ${bytes}; ask for less, or for a part at a time`,
})

const tooSlow = (ms: number): Refusal => ({
  status: 408,
  code: 159,
  name: 'TIMEOUT_EXCEEDED',
  text: `Timeout exceeded: maximum: ${ms} ms`,
})

export function unreachable(error: unknown): Refusal {
  const why = (error as NodeJS.ErrnoException).code ?? 'no answer'
  return {
    status: 503,
    code: 210,
    name: 'NETWORK_ERROR',
    text: `The engine cannot be reached now (${why})`,
  }
}
