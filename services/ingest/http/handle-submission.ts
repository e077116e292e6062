/**
 * The path of one submission through the process: headers, body, decision, group commit, answer.
 * It uses Node's own request and response, not the framework's route, which costs an edge a quarter
 * of its capacity. A 200 is sent only after the message with the event is acknowledged.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { queuedMsMax } from '#shared/core/base/limits/ingest.ts'
import { Problem, problemStatus } from '#shared/core/http/problem.ts'
import type { ClientAddresses } from '#shared/io/http/client-address.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import { toRequestId } from '#shared/io/http/http-server.ts'
import type { RefusalLog } from '#shared/io/http/refusal-log.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { AcceptedTally } from '../accepted-tally.ts'
import type { Admission } from '../admission.ts'
import type { BodyBudget } from '../body-budget.ts'
import {
  type Acceptance,
  decideSubmission,
  type EdgeDeps,
  type Refusal,
  type RefusalReason,
  refusals,
} from '../decide-submission.ts'
import { type GroupCommit, type Settlement, toWaiterBytes, type Waiter } from '../group-commit.ts'
import type { IngestObserver } from '../metrics.ts'
import type { RefusalDelay } from '../refusal-delay.ts'
import type { StaleSecretRequests } from '../stale-secret-requests.ts'
import { checkHeaders, discardBody, receiveBody } from './receive-body.ts'
import { type ReplyMeta, replyAccepted, replyProblem } from './reply.ts'

export const ingestPath = '/v1/rasp/ingest'

/** A submission that waits for its message's acknowledgement. */
export type Pending = Waiter & {
  reply: ServerResponse
  requestId: string
  acceptance: Acceptance
}

/** A submission that has been read and not decided on yet. */
export type Submission = {
  envelope: Envelope
  body: Buffer
  /** When it was whole, on the monotonic clock. */
  arrivedMs: number
}

export type SubmissionDeps = {
  log: Log
  addresses: ClientAddresses
  refusals: RefusalLog
  /** What is held of bodies that are not complete. */
  bodies: BodyBudget
  edge: EdgeDeps
  admission: Admission<Submission>
  commit: GroupCommit<Pending>
  observe: IngestObserver
  /** Where answers to tenants over a limit wait. */
  refusalDelay: RefusalDelay
  staleSecretRequests: StaleSecretRequests
  /** What reconciliation counts. */
  tally: Pick<AcceptedTally, 'count'>
  /** Counts what waits undecided. */
  stored: (sequence: number, tenantId: string, bytes: number) => void
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  stopping: () => boolean
}

/** What of a request matters beside its body. */
type Envelope = {
  reply: ServerResponse
  signature: string | undefined
  /** `X-Request-Id` as it was sent. */
  givenId: string | string[] | undefined
}

/** Takes a request for the ingest address that Node's server has read, and sees to its answer. */
export function handleSubmission(
  deps: SubmissionDeps,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { headers } = request
  const envelope: Envelope = {
    reply: response,
    // Sent twice, the header arrives joined by a comma, which is no signature.
    signature: headers['x-service-signature'] as string | undefined,
    givenId: headers['x-request-id'],
  }
  const refusal = checkHeaders(request)
  if (refusal !== null) {
    discardBody(request)
    answerRefusal(deps, envelope, refusal)
    return
  }
  receiveBody(request, deps.bodies, (body) => {
    if (body instanceof Uint8Array) {
      admit(deps, envelope, body)
      return
    }
    // Nothing more is read of it, so the connection cannot serve another request.
    if (body === refusals.bodyCut) response.setHeader('connection', 'close')
    answerRefusal(deps, envelope, body)
  })
}

function admit(deps: SubmissionDeps, envelope: Envelope, body: Buffer): void {
  deps.admission.admit({ envelope, body, arrivedMs: deps.edge.nowMs() })
}

/** Its answer comes now, or once its message is acknowledged. */
export function processSubmission(deps: SubmissionDeps, submission: Submission): void {
  const { envelope, body } = submission
  try {
    const refusal = take(deps, submission)
    if (refusal === null) return
    answerRefusal(deps, envelope, refusal)
    if (refusal.retired === undefined) return
    const { tenantId, last4 } = refusal.retired
    // Once the answer is on its way.
    setImmediate(() => deps.staleSecretRequests.note(tenantId, last4, body))
  } catch (error) {
    deps.log.error({ err: error }, 'a submission could not be decided')
    const problem = new Problem('internal_error', 'The request could not be processed.')
    const requestId = toRequestId(envelope.givenId)
    const meta = { requestId, rateLimit: null, close: deps.stopping() }
    refuse(deps, envelope.reply, { reason: 'defect', problem }, meta)
  }
}

/** @returns why it is refused, or null when it waits for its acknowledgement */
function take(deps: SubmissionDeps, submission: Submission): Refusal | null {
  const { envelope, body } = submission
  const decision = decideSubmission(body, envelope.signature, deps.edge)
  if (isVerified(decision)) proveConnection(envelope.reply.socket)
  if (decision.kind === 'refused') return decision
  const { rateLimit } = decision
  const fault = offer(deps, submission, decision)
  return fault === null || rateLimit === null ? fault : { ...fault, rateLimit }
}

/** Whether the signature was valid, whatever else there was. */
function isVerified(decision: Acceptance | Refusal): boolean {
  return decision.kind === 'accepted' || verifiedReasons.has(decision.reason)
}

/** What only a submission with a valid signature is refused for. */
const verifiedReasons: ReadonlySet<RefusalReason> = new Set([
  'rate',
  'byte_rate',
  'undecided',
  'body',
])

/** @returns why it cannot be stored, or null when it is on its way */
function offer(
  deps: SubmissionDeps,
  submission: Submission,
  acceptance: Acceptance,
): Refusal | null {
  if (!deps.connected()) return refusals.disconnected
  const { envelope, body, arrivedMs } = submission
  // Too little of its time is left to store it.
  if (deps.edge.nowMs() - arrivedMs > queuedMsMax) return refusals.overload
  const { head } = acceptance
  const taken = deps.commit.offer({
    head,
    body,
    bytes: toWaiterBytes(head, body),
    takenMs: arrivedMs,
    reply: envelope.reply,
    requestId: toRequestId(envelope.givenId),
    acceptance,
  })
  return taken ? null : refusals.overload
}

/** The message of this submission is stored, or it cannot be said to be. */
export function replySettled(deps: SubmissionDeps, pending: Pending, settlement: Settlement): void {
  const { reply, requestId, acceptance } = pending
  const { rateLimit } = acceptance
  const meta = { requestId, rateLimit, close: deps.stopping() }
  if (settlement.fault !== null) {
    deps.observe.refused(refusals.notStored)
    refuse(deps, reply, refusals.notStored, meta)
    return
  }
  deps.stored(settlement.sequence, acceptance.tenantId, pending.bytes)
  deps.tally.count(acceptance.tenantId, acceptance.receivedAtMs)
  deps.observe.accepted(acceptance, deps.edge.nowMs() - pending.takenMs)
  replyAccepted(reply, acceptance.answer, meta)
}

function answerRefusal(deps: SubmissionDeps, envelope: Envelope, refusal: Refusal): void {
  deps.observe.refused(refusal)
  const answer = () =>
    refuse(deps, envelope.reply, refusal, {
      requestId: toRequestId(envelope.givenId),
      rateLimit: refusal.rateLimit ?? null,
      close: deps.stopping(),
    })
  if (refusal.limitedTenantId === undefined) answer()
  else deps.refusalDelay.hold(answer)
}

/** Answers with a problem, and logs why. */
function refuse(
  deps: SubmissionDeps,
  reply: ServerResponse,
  { reason, problem }: { reason: string; problem: Problem },
  meta: ReplyMeta,
): void {
  // Before the answer: a connection that is gone has no address.
  const source = deps.addresses.of(reply.req)
  replyProblem(reply, problem, meta)
  deps.refusals({
    requestId: meta.requestId,
    status: problemStatus(problem.code),
    code: problem.code,
    reason,
    method: 'POST',
    route: ingestPath,
    source,
  })
}
