/**
 * The path of one submission through the process: headers, body, decision, group commit, answer.
 * It uses Node's own request and response, not the framework's route, which costs an edge a quarter
 * of its capacity. A 200 is sent only after the message with the event is acknowledged.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { queuedMsMax } from '#shared/core/base/limits.ts'
import { Problem, problemStatus } from '#shared/core/http/problem.ts'
import type { ClientAddresses } from '#shared/io/http/client-address.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import { toRequestId } from '#shared/io/http/http-server.ts'
import type { RefusalLog } from '#shared/io/http/refusal-log.ts'
import type { Log } from '#shared/io/process/log.ts'
import {
  type Acceptance,
  decideTelemetry,
  type EdgeDeps,
  type Refusal,
  type RefusalReason,
  refusals,
} from './accept-telemetry.ts'
import type { AcceptedTally } from './accepted-tally.ts'
import type { Admission } from './admission.ts'
import type { BodyBudget } from './body-budget.ts'
import { type GroupCommit, type Settlement, toWaiterBytes, type Waiter } from './group-commit.ts'
import { checkHeaders, discardBody, receiveBody } from './http/receive-body.ts'
import { type ReplyMeta, replyAccepted, replyProblem } from './http/reply.ts'
import type { IngestObserver } from './observe.ts'
import type { RefusalDelay } from './refusal-delay.ts'
import type { StaleSecretRequests } from './stale-secret-requests.ts'

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

export type Intake = {
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
  hold: RefusalDelay
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
export function receiveTelemetry(
  intake: Intake,
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
    answerRefusal(intake, envelope, refusal)
    return
  }
  receiveBody(request, intake.bodies, (body) => {
    if (body instanceof Uint8Array) {
      admit(intake, envelope, body)
      return
    }
    // Nothing more is read of it, so the connection cannot serve another request.
    if (body === refusals.bodyCut) response.setHeader('connection', 'close')
    answerRefusal(intake, envelope, body)
  })
}

function admit(intake: Intake, envelope: Envelope, body: Buffer): void {
  intake.admission.admit({ envelope, body, arrivedMs: intake.edge.nowMs() })
}

/** Its answer comes now, or once its message is acknowledged. */
export function decideSubmission(intake: Intake, submission: Submission): void {
  const { envelope, body } = submission
  try {
    const refusal = take(intake, submission)
    if (refusal === null) return
    answerRefusal(intake, envelope, refusal)
    if (refusal.retired === undefined) return
    const { tenantId, last4 } = refusal.retired
    // Once the answer is on its way.
    setImmediate(() => intake.staleSecretRequests.note(tenantId, last4, body))
  } catch (error) {
    intake.log.error({ err: error }, 'a submission could not be decided')
    const problem = new Problem('internal_error', 'The request could not be processed.')
    const requestId = toRequestId(envelope.givenId)
    const meta = { requestId, rateLimit: null, close: intake.stopping() }
    refuse(intake, envelope.reply, { reason: 'defect', problem }, meta)
  }
}

/** @returns why it is refused, or null when it waits for its acknowledgement */
function take(intake: Intake, submission: Submission): Refusal | null {
  const { envelope, body } = submission
  const decision = decideTelemetry(body, envelope.signature, intake.edge)
  if (isVerified(decision)) proveConnection(envelope.reply.socket)
  if (decision.kind === 'refused') return decision
  const { rateLimit } = decision
  const fault = offer(intake, submission, decision)
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
function offer(intake: Intake, submission: Submission, acceptance: Acceptance): Refusal | null {
  if (!intake.connected()) return refusals.disconnected
  const { envelope, body, arrivedMs } = submission
  // Too little of its time is left to store it.
  if (intake.edge.nowMs() - arrivedMs > queuedMsMax) return refusals.overload
  const { head } = acceptance
  const taken = intake.commit.offer({
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
export function answerPending(intake: Intake, pending: Pending, settlement: Settlement): void {
  const { reply, requestId, acceptance } = pending
  const { rateLimit } = acceptance
  const meta = { requestId, rateLimit, close: intake.stopping() }
  if (settlement.fault !== null) {
    intake.observe.refused(refusals.notStored)
    refuse(intake, reply, refusals.notStored, meta)
    return
  }
  intake.stored(settlement.sequence, acceptance.tenantId, pending.bytes)
  intake.tally.count(acceptance.tenantId, acceptance.receivedAtMs)
  intake.observe.accepted(acceptance, intake.edge.nowMs() - pending.takenMs)
  replyAccepted(reply, acceptance.answer, meta)
}

function answerRefusal(intake: Intake, envelope: Envelope, refusal: Refusal): void {
  intake.observe.refused(refusal)
  const answer = () =>
    refuse(intake, envelope.reply, refusal, {
      requestId: toRequestId(envelope.givenId),
      rateLimit: refusal.rateLimit ?? null,
      close: intake.stopping(),
    })
  if (refusal.limitedTenantId === undefined) answer()
  else intake.hold.hold(answer)
}

/** Answers with a problem, and logs why. */
function refuse(
  intake: Intake,
  reply: ServerResponse,
  { reason, problem }: { reason: string; problem: Problem },
  meta: ReplyMeta,
): void {
  // Before the answer: a connection that is gone has no address.
  const source = intake.addresses.of(reply.req)
  replyProblem(reply, problem, meta)
  intake.refusals({
    requestId: meta.requestId,
    status: problemStatus(problem.code),
    code: problem.code,
    reason,
    method: 'POST',
    route: ingestPath,
    source,
  })
}
