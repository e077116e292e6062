/**
 * Handles `POST /v1/rasp/ingest`: headers, body, decision, group commit, response. It sends a 200
 * only after JetStream has acknowledged the message with the event. It uses Node's request and
 * response: a fastify route that hands over raw bytes costs an edge a quarter of its capacity
 * (`npm run bench -- edge`).
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import { queuedMsMax, requestLogReadBytes } from '#shared/core/base/limits/ingest.ts'
import {
  problemStatus,
  type RefusedRequest,
  type UnstoredBatch,
} from '#shared/core/http/problem.ts'
import type { RateLimitFields } from '#shared/core/http/rate-limit.ts'
import {
  type EventEvidence,
  isEvidenceForm,
  toEventInstall,
} from '#shared/core/installs/event-evidence.ts'
import { describeRefusedRequest } from '#shared/core/telemetry/signature-form.ts'
import type { ClientAddresses } from '#shared/io/http/client-address.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import type { BodyBudget } from '#shared/io/http/incoming/body-budget.ts'
import { type BodyFault, receiveBody } from '#shared/io/http/incoming/receive-body.ts'
import { afterHead } from '#shared/io/http/incoming/stop-reading.ts'
import { toRequestId } from '#shared/io/http/problem-answers.ts'
import type { RefusalLog } from '#shared/io/http/refusal-log.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Span, Tracing } from '#shared/io/tracing/tracing.ts'
import type { AcceptedTally } from '../accepted-tally.ts'
import {
  type Acceptance,
  type Admitted,
  admitSubmission,
  type DecideDeps,
  decideAdmitted,
  isVerified,
} from '../decide-submission.ts'
import { type Settlement, toWaiterBytes, type Waiter } from '../group-commit.ts'
import type { VerifyEventEvidence } from '../installs/event-evidence.ts'
import type { Intakes } from '../intakes.ts'
import type { IngestObserver } from '../metrics.ts'
import type { RefusalDelay } from '../refusal-delay.ts'
import { type Refusal, refusals, toVerified } from '../refusals.ts'
import type { RequestLog } from '../request-log.ts'
import type { StaleSecretRequests } from '../stale-secret-requests.ts'
import { type Credentials, findSender } from '../verify-sender.ts'
import type { BatchReply } from './batch-reply.ts'
import { checkHeaders } from './check-headers.ts'
import { replyAccepted, replyProblem } from './reply.ts'
import { endRefused, traceSubmission } from './trace-submissions.ts'

export const ingestPath = '/v1/rasp/ingest'
export const batchPath = `${ingestPath}/batch`

export const installsPath = '/v1/rasp/installs'

/** Whether a request is to an address, with or without a query. */
export const isPath = (url: string | undefined, path: string): boolean =>
  url === path || url?.startsWith(`${path}?`) === true

const routeOf = (url: string | undefined): string =>
  [batchPath, installsPath].find((path) => isPath(url, path)) ?? ingestPath

/** A submission whose body has been read. */
export type Submission = {
  response: ServerResponse
  body: Buffer
  /** When its body was complete, on the monotonic clock. */
  arrivedMs: number
  /** The tenant that the body names, once it was looked for; null when it names none. */
  named?: string | null
  /** The address that it was sent to. */
  kind: 'event' | 'batch' | 'registration'
}

/** An accepted submission that waits for the acknowledgement of its message. */
export type Pending = Waiter & {
  body: Buffer
  response: ServerResponse
  requestId: string
  acceptance: Acceptance
  /** Null when it is not traced. */
  span: Span | null
  /** Its place in a batch of the client's; null when it was sent alone. */
  batch: { reply: BatchReply; index: number } | null
}

/** A registration of an install that waits likewise. */
export type PendingRegistration = Waiter & {
  acceptance: Pick<Acceptance, 'telemetryStream' | 'eventId'>
  span: null
  response: ServerResponse
  requestId: string
  respond: (settlement: Settlement) => void
}

export type SubmissionDeps = {
  log: Log
  addresses: ClientAddresses
  refusals: RefusalLog
  /** Memory of incomplete bodies. */
  bodies: BodyBudget
  /** Memory of incomplete batches. */
  batchBodies: BodyBudget
  decide: DecideDeps
  verifyEvent: VerifyEventEvidence
  /** Submissions whose evidence is being verified. */
  evidenceWaits: Set<Promise<void>>
  intakes: Intakes<Submission, Pending | PendingRegistration>
  observe: IngestObserver
  refusalDelay: RefusalDelay
  staleSecretRequests: StaleSecretRequests
  requestLog: Pick<RequestLog, 'noteAccepted' | 'noteRefused'>
  /** Counts for reconciliation. */
  tally: Pick<AcceptedTally, 'count'>
  /** Null while it is off. */
  tracing: Tracing | null
  /** Adds an event that a stream stored to its tenant's backlog. */
  addToBacklog: (stream: number, sequence: number, tenantId: string, bytes: number) => void
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  stopping: () => boolean
}

const bodyFaults = {
  too_large: refusals.tooLarge,
  cut: refusals.bodyCut,
  framing: refusals.framing,
} as const satisfies Record<BodyFault, Refusal>

/** Handles one request that Node's server has read the head of. Always sends a response. */
export function handleSubmission(
  deps: SubmissionDeps,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const refusal = checkHeaders(request, bodyBytesMax, refusals.tooLarge)
  if (refusal !== null) {
    afterHead(request, () => respondRefused(deps, response, refusal))
    return
  }
  receiveBody(request, { bytesMax: bodyBytesMax, budget: deps.bodies }, (body) => {
    if (typeof body === 'string') respondRefused(deps, response, bodyFaults[body])
    else deps.intakes.admit({ response, body, arrivedMs: deps.decide.nowMs(), kind: 'event' })
  })
}

/** Decides on a submission. An accepted one gets its response from `respondSettled`. */
export function processSubmission(deps: SubmissionDeps, submission: Submission): void {
  const { response, body, named } = submission
  try {
    const admitted = admitSubmission(body, credentialsOf(response), deps.decide, named)
    if ('kind' in admitted) {
      respondDecided(deps, submission, admitted)
      return
    }
    const evidence = verifyEvidence(deps, submission, admitted)
    if (evidence !== null && 'kind' in evidence) {
      respondDecided(deps, submission, evidence)
    } else if (evidence instanceof Promise)
      waitForEvidence(deps, submission, { admitted, evidence })
    else {
      const beside = { evidence, readAddress: addressOf(deps, response) }
      respondDecided(deps, submission, decideAdmitted(body, admitted, deps.decide, beside))
    }
  } catch (error) {
    respondDefect(deps, submission, error)
  }
}

/** The evidence that an install sent with its event, or a refusal of a header that is none. */
function verifyEvidence(
  { verifyEvent }: SubmissionDeps,
  { response, body }: Submission,
  { sender: { install, tenant }, rateLimit }: Admitted,
): EventEvidence | null | Promise<EventEvidence> | Refusal {
  const header = response.req.headers['x-service-attestation'] as string | undefined
  if (header === undefined || install === null) return null
  if (!isEvidenceForm(header)) {
    return toVerified(refusals.evidenceForm, tenant.tenantId, rateLimit)
  }
  return verifyEvent(header, body, toEventInstall(install.facts), tenant)
}

/** The credentials may have changed meanwhile, so they are verified again. */
function waitForEvidence(
  deps: SubmissionDeps,
  submission: Submission,
  waited: { admitted: Admitted; evidence: Promise<EventEvidence> },
): void {
  const { response, body, named } = submission
  const { rateLimit } = waited.admitted
  const waits = waited.evidence
    .then((evidence) => {
      const sender = findSender(body, credentialsOf(response), deps.decide, named)
      const decision =
        'kind' in sender
          ? sender
          : decideAdmitted(body, { sender, rateLimit }, deps.decide, {
              evidence,
              readAddress: addressOf(deps, response),
            })
      respondDecided(deps, submission, decision)
    })
    .catch((error: unknown) => respondDefect(deps, submission, error))
    .finally(() => deps.evidenceWaits.delete(waits))
  deps.evidenceWaits.add(waits)
}

function respondDefect(deps: SubmissionDeps, { response, body }: Submission, error: unknown): void {
  const requestId = requestIdOf(response)
  deps.log.error({ err: error, request_id: requestId }, 'deciding on a submission failed')
  respondRefused(deps, response, refusals.defect, body)
}

/** Commits an accepted submission, and responds to a refused one. */
function respondDecided(
  deps: SubmissionDeps,
  submission: Submission,
  decision: Acceptance | Refusal,
): void {
  const { response, body } = submission
  const refusal = commit(deps, submission, decision)
  if (refusal === null) return
  respondRefused(deps, response, refusal, body)
  if (refusal.retired === undefined) return
  const { tenantId, last4 } = refusal.retired
  // After the response is on its way, so that its time reveals nothing.
  setImmediate(() => deps.staleSecretRequests.note(tenantId, last4, body))
}

/** @returns why it is refused; null when it waits for its acknowledgement */
function commit(
  deps: SubmissionDeps,
  submission: Submission,
  decision: Acceptance | Refusal,
): Refusal | null {
  if (isVerified(decision)) proveConnection(submission.response.socket)
  const span = startSpan(deps, submission, decision)
  if (decision.kind === 'refused') {
    endRefused(span, decision)
    return decision
  }
  const fault = offer(deps, submission, decision, span)
  if (fault === null) return null
  endRefused(span, fault)
  const { tenantId, eventId, rateLimit } = decision
  const verified = { ...fault, verifiedTenantId: tenantId, eventId }
  return rateLimit === null ? verified : { ...verified, rateLimit }
}

/** @returns null when it is not traced */
export function startSpan(
  { tracing, decide }: SubmissionDeps,
  { response, arrivedMs }: Pick<Submission, 'response' | 'arrivedMs'>,
  decision: Acceptance | Refusal,
): Span | null {
  if (tracing === null) return null
  const agoMs = decide.nowMs() - arrivedMs
  return traceSubmission(tracing, decision, {
    agoMs,
    traceparent: response.req.headers.traceparent,
  })
}

/** @returns why it cannot be stored; null when it waits for its acknowledgement */
function offer(
  deps: SubmissionDeps,
  { response, body, arrivedMs }: Submission,
  acceptance: Acceptance,
  span: Span | null,
): Refusal | null {
  const fault = findStoringFault(deps, arrivedMs)
  if (fault !== null) return fault
  const { head, hashedBody } = acceptance
  const stored = hashedBody?.body ?? body
  const offered = deps.intakes.offer({
    head,
    body: stored,
    bytes: toWaiterBytes(head, stored),
    arrivedMs,
    response,
    requestId: requestIdOf(response),
    acceptance,
    span,
    batch: null,
  })
  return offered ? null : refusals.overload
}

/** @returns why nothing can be stored now, or not in time */
export function findStoringFault(deps: SubmissionDeps, arrivedMs: number): Refusal | null {
  if (!deps.connected()) return refusals.disconnected
  // Too little of its time limit is left to store it.
  return deps.decide.nowMs() - arrivedMs > queuedMsMax ? refusals.overload : null
}

/** Responds once the message of a submission is stored, or its storing has failed. */
export function respondSettled(
  deps: SubmissionDeps,
  pending: Pending,
  settlement: Settlement,
): void {
  const { response, requestId, acceptance, batch } = pending
  const { tenantId, eventId, telemetryStream, rateLimit } = acceptance
  if (settlement.fault !== null) {
    const refusal = { ...refusals.notStored, verifiedTenantId: tenantId, eventId }
    endRefused(pending.span, refusal)
    deps.observe.refused(refusal)
    deps.requestLog.noteRefused(refusal, pending.body, requestId)
    if (batch === null) refuse(deps, response, { refusal, requestId, rateLimit })
    else batch.reply.setUnavailable(batch.index, eventId)
    return
  }
  deps.addToBacklog(telemetryStream, settlement.sequence, tenantId, pending.bytes)
  deps.tally.count(tenantId, acceptance.receivedAtMs)
  deps.observe.accepted(acceptance, deps.decide.nowMs() - pending.arrivedMs)
  const { answer } = acceptance
  if (batch === null) {
    replyAccepted(response, answer, { requestId, rateLimit, close: deps.stopping() })
  } else batch.reply.setAccepted(batch.index, answer)
  pending.span?.end({ attributes: { 'http.response.status_code': 200 } })
  deps.requestLog.noteAccepted(acceptance, requestId)
  deps.log.debug({ request_id: requestId, event_id: eventId }, 'an event was accepted')
}

/** Ends a submission whose response failed by a defect: its client sends it again. */
export function endUnsettled(
  deps: SubmissionDeps,
  { response, requestId }: Pick<Pending, 'response' | 'requestId'>,
  error: unknown,
): void {
  deps.observe.unanswered()
  deps.log.error({ err: error, request_id: requestId }, 'answering a submission failed')
  response.destroy()
}

/** @param body the complete body, when it was read */
export function respondRefused(
  deps: SubmissionDeps,
  response: ServerResponse,
  refusal: Refusal,
  body?: Buffer,
): void {
  const requestId = requestIdOf(response)
  deps.observe.refused(refusal)
  if (body !== undefined) {
    // The log waits before it reads the start of a body: a copy holds no batch in memory.
    const start = body.length > bodyBytesMax ? toStart(body) : body
    deps.requestLog.noteRefused(refusal, start, requestId)
  }
  sendRefusal(deps, response, refusal, body)
}

/** Answers a refused request, a limited tenant's after a while. @param body when it was read */
export function sendRefusal(
  deps: SubmissionDeps,
  response: ServerResponse,
  refusal: Refusal,
  body?: Buffer,
): void {
  // Of every 401 alike, so that it tells nothing of tenants.
  const isUnsigned = body !== undefined && problemStatus(refusal.problem.code) === 401
  const respond = () =>
    refuse(deps, response, {
      refusal,
      requestId: requestIdOf(response),
      rateLimit: refusal.rateLimit ?? null,
      request: isUnsigned ? describeRefusedRequest(body, signatureOf(response)) : undefined,
    })
  if (refusal.limitedTenantId === undefined) respond()
  else deps.refusalDelay.delay(respond)
}

/** A copy of the start of a body, for the request log. */
export const toStart = (body: Buffer): Buffer => Buffer.from(body.subarray(0, requestLogReadBytes))

// Node joins a repeated header with a comma, which no signature contains.
export const signatureOf = (response: ServerResponse): string | undefined =>
  response.req.headers['x-service-signature'] as string | undefined

/** Node joins repeated tokens with a comma as well, so they are malformed. */
export const credentialsOf = (response: ServerResponse): Credentials => ({
  signature: signatureOf(response),
  install: response.req.headers['x-service-install'] as string | undefined,
})

/**
 * Reads the client's address. The server has read that of the connection when it was opened, so it
 * is known also of a client that has gone.
 */
export const addressOf =
  ({ addresses }: Pick<SubmissionDeps, 'addresses'>, response: ServerResponse) =>
  (): string =>
    addresses.of(response.req)

export const requestIdOf = (response: ServerResponse): string =>
  toRequestId(response.req.headers['x-request-id'])

/** Sends a problem and logs the reason. */
export function refuse(
  deps: SubmissionDeps,
  response: ServerResponse,
  refused: {
    refusal: Refusal
    requestId: string
    rateLimit: RateLimitFields | null
    request?: RefusedRequest | UnstoredBatch | undefined
  },
): void {
  const { requestId, rateLimit, request } = refused
  const { reason, problem, eventId } = refused.refusal
  // Read it before the response: a closed connection has no address.
  const source = deps.addresses.of(response.req)
  replyProblem(response, problem, { requestId, rateLimit, request, close: deps.stopping() })
  deps.refusals({
    requestId,
    eventId,
    status: problemStatus(problem.code),
    code: problem.code,
    reason,
    method: 'POST',
    route: routeOf(response.req.url),
    source,
  })
}
