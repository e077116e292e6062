/**
 * Handles `POST /v1/rasp/ingest/batch`: one signed body with many submissions. Each event is
 * stored, counted and traced as if it was sent alone. The answer is sent when the last one is
 * settled. With an event that is not certainly stored it is a 503 that says so of each: sending the
 * same bytes again is safe.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { retryAfterSeconds } from '#shared/core/base/limits/http.ts'
import { clientBatchBytesMax } from '#shared/core/base/limits/ingest.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import { type BodyFault, receiveBody } from '#shared/io/http/incoming/receive-body.ts'
import { afterHead } from '#shared/io/http/incoming/stop-reading.ts'
import { type DecidedBatch, decideClientBatch } from '../decide-client-batch.ts'
import type { Acceptance } from '../decide-submission.ts'
import { toWaiterBytes } from '../group-commit.ts'
import { type Refusal, refusals, toVerified } from '../refusals.ts'
import { type BatchReply, createBatchReply, toBatchAnswer, toUnstoredBatch } from './batch-reply.ts'
import { checkHeaders } from './check-headers.ts'
import {
  addressOf,
  credentialsOf,
  findStoringFault,
  type Pending,
  refuse,
  requestIdOf,
  respondRefused,
  type Submission,
  type SubmissionDeps,
  startSpan,
  toStart,
} from './handle-submission.ts'
import { replyAccepted } from './reply.ts'
import { endRefused } from './trace-submissions.ts'

const bodyFaults = {
  too_large: refusals.batchTooLarge,
  cut: refusals.bodyCut,
  framing: refusals.framing,
} as const satisfies Record<BodyFault, Refusal>

/** Handles one request that Node's server has read the head of. Always sends a response. */
export function handleClientBatch(
  deps: SubmissionDeps,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const refusal = checkHeaders(request, clientBatchBytesMax, refusals.batchTooLarge)
  if (refusal !== null) {
    afterHead(request, () => refuseBatch(deps, response, refusal))
    return
  }
  receiveBody(request, { bytesMax: clientBatchBytesMax, budget: deps.batchBodies }, (body) => {
    if (typeof body === 'string') refuseBatch(deps, response, bodyFaults[body])
    else deps.intakes.admit({ response, body, arrivedMs: deps.decide.nowMs(), kind: 'batch' })
  })
}

/** Decides on a batch that has been read. It gets its response when its last event is settled. */
export function processClientBatch(deps: SubmissionDeps, submission: Submission): void {
  const { response, body } = submission
  let refusal: Refusal | null
  try {
    refusal = decideAndOffer(deps, submission)
  } catch (error) {
    const requestId = requestIdOf(response)
    deps.log.error({ err: error, request_id: requestId }, 'deciding on a batch failed')
    refusal = refusals.defect
  }
  if (refusal === null) return
  refuseBatch(deps, response, refusal, body)
  if (refusal.retired === undefined) return
  const { tenantId, last4 } = refusal.retired
  // Batches come from servers, which have no SDK version. The body is not kept.
  setImmediate(() => deps.staleSecretRequests.note(tenantId, last4, Buffer.alloc(0)))
}

/** Answers a batch that is refused as a whole. @param body when its signature was looked at */
export function refuseBatch(
  deps: SubmissionDeps,
  response: ServerResponse,
  refusal: Refusal,
  body?: Buffer,
): void {
  deps.observe.clientBatch(refusal.problem.code, null)
  respondRefused(deps, response, refusal, body)
}

/** @returns why the whole is refused; null when it waits for acknowledgements, or is answered */
function decideAndOffer(deps: SubmissionDeps, submission: Submission): Refusal | null {
  const { response, body, arrivedMs } = submission
  const decided = decideClientBatch(body, credentialsOf(response), deps.decide, {
    named: submission.named,
    readAddress: addressOf(deps, response),
  })
  if (decided.kind === 'refused') {
    if (decided.verifiedTenantId !== undefined) proveConnection(response.socket)
    return decided
  }
  proveConnection(response.socket)
  const reply = createReply(deps, response, decided)
  const [first, ...others] = toPending(deps, submission, decided, reply)
  if (first !== undefined) {
    const fault = findStoringFault(deps, arrivedMs)
    const refusal = fault ?? (deps.intakes.offerAll([first, ...others]) ? null : refusals.overload)
    if (refusal !== null) {
      for (const { span } of [first, ...others]) endRefused(span, refusal)
      return toVerified(refusal, decided.tenantId, decided.rateLimit)
    }
  }
  decided.events.forEach(({ body: event, decision }, index) => {
    if (decision.kind === 'accepted') return
    deps.observe.refused(decision)
    const verified = { ...decision, verifiedTenantId: decided.tenantId }
    deps.requestLog.noteRefused(verified, toStart(event), requestIdOf(response))
    reply.setInvalid(index, decision)
  })
  return null
}

/** The accepted events of a batch, as group commit stores them. */
function toPending(
  deps: SubmissionDeps,
  { response, arrivedMs }: Submission,
  { events }: DecidedBatch,
  reply: BatchReply,
): Pending[] {
  const requestId = requestIdOf(response)
  const waiterOf = (body: Buffer, acceptance: Acceptance, index: number): Pending => ({
    head: acceptance.head,
    body,
    bytes: toWaiterBytes(acceptance.head, body),
    arrivedMs,
    response,
    requestId,
    acceptance,
    span: startSpan(deps, { response, arrivedMs }, acceptance),
    batch: { reply, index },
  })
  return events.flatMap(({ body, decision }, index) =>
    decision.kind === 'accepted' ? waiterOf(body, decision, index) : [],
  )
}

function createReply(
  deps: SubmissionDeps,
  response: ServerResponse,
  { tenantId, events, rateLimit }: DecidedBatch,
): BatchReply {
  const requestId = requestIdOf(response)
  return createBatchReply(events.length, (counts, entries) => {
    if (counts.unavailable === 0) {
      deps.observe.clientBatch('accepted', counts)
      const answer = toBatchAnswer(counts, entries)
      replyAccepted(response, answer, { requestId, rateLimit, close: deps.stopping() })
      return
    }
    const problem = new Problem('unavailable', unstoredDetail, { retryAfterSeconds })
    deps.observe.clientBatch(problem.code, counts)
    const refusal = { ...refusals.notStored, problem, verifiedTenantId: tenantId }
    const request = toUnstoredBatch(counts, entries)
    refuse(deps, response, { refusal, requestId, rateLimit, request })
  })
}

const unstoredDetail =
  'Not every event could be stored. Send the same batch again: events that are stored count once.'
