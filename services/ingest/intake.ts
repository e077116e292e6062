/**
 * The path of one submission through the process: headers, body, decision, group commit, answer. It
 * works on Node's own request and response: the framework would cost as much again as all of it. A
 * 200 leaves only after the acknowledgement of the very message that holds the event.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '#shared/core/problem.ts'
import type { RateLimitFields } from '#shared/core/rate-limit.ts'
import { toRequestId, writeProblem } from '#shared/io/http-server.ts'
import type { Log } from '#shared/io/log.ts'
import {
  type Acceptance,
  decideTelemetry,
  type EdgeView,
  type Refusal,
  refusals,
} from './accept-telemetry.ts'
import type { AcceptedTally } from './accepted-tally.ts'
import { type GroupCommit, toWaiterBytes, type Waiter } from './group-commit.ts'
import type { IngestObserver } from './observe.ts'
import { checkHeaders, discardBody, receiveBody } from './receive-body.ts'
import type { RetiredUse } from './retired-use.ts'

/** A submission that waits for its message's acknowledgement. */
export type Pending = Waiter & {
  response: ServerResponse
  requestId: string
  acceptance: Acceptance
}

export type Intake = {
  log: Log
  view: EdgeView
  commit: GroupCommit<Pending>
  observe: IngestObserver
  retiredUse: RetiredUse
  /** What the ledger is told of. */
  tally: Pick<AcceptedTally, 'count'>
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  stopping: () => boolean
  newRequestId: () => string
}

/** Takes a whole request for the ingest address and sees to its answer. */
export function receiveTelemetry(
  intake: Intake,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const refusal = checkHeaders(request)
  if (refusal !== null) {
    discardBody(request)
    answerRefusal(intake, request, response, refusal)
    return
  }
  receiveBody(request, (body) => {
    try {
      const refusal = body === null ? refusals.tooLarge : take(intake, request, response, body)
      if (refusal === null) return
      answerRefusal(intake, request, response, refusal)
      if (refusal.retired === undefined || body === null) return
      const { tenantId, last4 } = refusal.retired
      // Once the answer is on its way.
      setImmediate(() => intake.retiredUse.note(tenantId, last4, body))
    } catch (error) {
      intake.log.error({ err: error }, 'a submission could not be decided')
      const problem = new Problem('internal_error', 'The request could not be processed.')
      answerProblem(intake, request, response, problem)
    }
  })
}

/** @returns why it is refused, or null when it waits for its acknowledgement */
function take(
  intake: Intake,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
): Refusal | null {
  const takenMs = intake.view.nowMs()
  // Sent twice, the header arrives joined by a comma, which is no signature.
  const signature = request.headers['x-service-signature'] as string | undefined
  const decision = decideTelemetry(body, signature, intake.view)
  if (decision.kind === 'refused') return decision
  const { head, rateLimit } = decision
  if (rateLimit !== null) setRateLimit(response, rateLimit)
  if (!intake.connected()) return refusals.disconnected
  const taken = intake.commit.offer({
    head,
    body,
    bytes: toWaiterBytes(head, body),
    takenMs,
    response,
    requestId: toAnswerId(intake, request),
    acceptance: decision,
  })
  return taken ? null : refusals.overload
}

/** The message of this submission is stored, or it cannot be said to be. */
export function answerPending(intake: Intake, pending: Pending, fault: string | null): void {
  const { response, requestId, acceptance } = pending
  if (intake.stopping()) response.setHeader('connection', 'close')
  if (fault !== null) {
    intake.observe.refused(refusals.notStored)
    writeProblem(response, refusals.notStored.problem, requestId)
    return
  }
  intake.tally.count(acceptance.tenantId, acceptance.receivedAtMs)
  intake.observe.accepted(acceptance, intake.view.nowMs() - pending.takenMs)
  const { answer } = acceptance
  // The answer is ASCII throughout: its characters are its bytes.
  response.writeHead(200, [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(answer.length),
    'x-request-id',
    requestId,
  ])
  response.end(answer, 'latin1')
}

function answerRefusal(
  intake: Intake,
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
): void {
  intake.observe.refused(refusal)
  if (refusal.rateLimit !== undefined) setRateLimit(response, refusal.rateLimit)
  answerProblem(intake, request, response, refusal.problem)
}

/** Before the head is written; only tenants with a rate pay for it. */
function setRateLimit(response: ServerResponse, { policy, limit }: RateLimitFields): void {
  response.setHeader('ratelimit-policy', policy)
  response.setHeader('ratelimit', limit)
}

function answerProblem(
  intake: Intake,
  request: IncomingMessage,
  response: ServerResponse,
  problem: Problem,
): void {
  if (intake.stopping()) response.setHeader('connection', 'close')
  writeProblem(response, problem, toAnswerId(intake, request))
}

function toAnswerId(intake: Intake, request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return given === undefined ? intake.newRequestId() : toRequestId(given)
}
