/**
 * Handles `POST /v1/rasp/installs`: the registration of an install, signed with the tenant's HMAC
 * secret. The answer is sent once its record is stored in the stream. Evidence is verified
 * meanwhile, elsewhere; the signature is verified again after it, since the secret can have been
 * replaced.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { evidenceTimeoutMs, registrationBytesMax } from '#shared/core/base/limits/installs.ts'
import { Problem, problemStatus } from '#shared/core/http/problem.ts'
import { decodeChallenge, findChallengeFault } from '#shared/core/installs/challenge.ts'
import type { VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import { type InstallRequest, parseInstall } from '#shared/core/installs/install-request.ts'
import { proveConnection } from '#shared/io/http/connection-guard.ts'
import type { BodyBudget } from '#shared/io/http/incoming/body-budget.ts'
import { type BodyFault, receiveBody } from '#shared/io/http/incoming/receive-body.ts'
import { afterHead } from '#shared/io/http/incoming/stop-reading.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { type Settlement, toWaiterBytes } from '../group-commit.ts'
import { checkHeaders } from '../http/check-headers.ts'
import {
  findStoringFault,
  requestIdOf,
  type Submission,
  type SubmissionDeps,
  sendRefusal,
  signatureOf,
} from '../http/handle-submission.ts'
import { replyAccepted } from '../http/reply.ts'
import { type Refusal, refusals, refuse } from '../refusals.ts'
import { findRegistrar } from '../verify-sender.ts'
import { makeRegistration } from './make-registration.ts'
import type { RegistrationBounds } from './registration-bounds.ts'
import type { RegistrationObserver } from './registration-metrics.ts'
import type { VerifyEvidence } from './verify-evidence.ts'

export type RegistrationDeps = {
  submissions: SubmissionDeps
  /** Memory of incomplete registrations. */
  bodies: BodyBudget
  /** The keys that challenges may have. */
  challengeKeys: readonly Uint8Array[]
  verifyEvidence: VerifyEvidence
  bounds: RegistrationBounds
  observe: RegistrationObserver
}

const bodyFaults = {
  too_large: refusals.tooLarge,
  cut: refusals.bodyCut,
  framing: refusals.framing,
} as const satisfies Record<BodyFault, Refusal>

/** Handles one request that Node's server has read the head of. Always sends a response. */
export function handleRegistration(
  deps: RegistrationDeps,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { intakes, decide } = deps.submissions
  const refusal = checkHeaders(request, registrationBytesMax, refusals.tooLarge)
  if (refusal !== null) {
    afterHead(request, () => refuseRegistration(deps, response, refusal))
    return
  }
  receiveBody(request, { bytesMax: registrationBytesMax, budget: deps.bodies }, (body) => {
    if (typeof body === 'string') refuseRegistration(deps, response, bodyFaults[body])
    else intakes.admit({ response, body, arrivedMs: decide.nowMs(), kind: 'registration' })
  })
}

/** Decides on a registration that has been read. */
export function processRegistration(deps: RegistrationDeps, submission: Submission): void {
  void decideRegistration(deps, submission)
    .catch((error: unknown) => {
      const requestId = requestIdOf(submission.response)
      deps.submissions.log.error({ err: error, request_id: requestId }, 'a registration failed')
      return refusals.defect
    })
    .then((refusal) => {
      if (refusal !== null) {
        refuseRegistration(deps, submission.response, refusal, submission.body)
      }
    })
}

/** Answers a refused registration. @param body when its signature was looked at */
export function refuseRegistration(
  deps: RegistrationDeps,
  response: ServerResponse,
  refusal: Refusal,
  body?: Buffer,
): void {
  const { submissions, observe } = deps
  observe.refused(refusal)
  if (body !== undefined) {
    submissions.requestLog.noteRefused(refusal, body, requestIdOf(response), 'registration')
  }
  sendRefusal(submissions, response, refusal, body)
}

/** @returns why it is refused; null when it waits for its acknowledgement */
async function decideRegistration(
  deps: RegistrationDeps,
  submission: Submission,
): Promise<Refusal | null> {
  const { submissions } = deps
  const { response, body } = submission
  const tenant = findRegistrar(body, signatureOf(response), submissions.decide)
  if ('kind' in tenant) return tenant
  proveConnection(response.socket)
  const refusal = await decideVerified(deps, submission, tenant)
  // A refusal that a second look at the signature made is no verified one.
  if (refusal === null || problemStatus(refusal.problem.code) === 401) return refusal
  return { ...refusal, verifiedTenantId: tenant.tenantId }
}

/** @returns as `decideRegistration`, of a body whose signature is valid */
async function decideVerified(
  deps: RegistrationDeps,
  submission: Submission,
  tenant: Tenant,
): Promise<Refusal | null> {
  const { submissions, bounds } = deps
  const { body } = submission
  if (!submissions.decide.mayWait(tenant)) return refusals.registrations
  const end = bounds.begin(tenant.tenantId)
  if (typeof end !== 'function') return end
  let isVerifying = false
  try {
    const request = readRequest(deps, body, tenant)
    if ('kind' in request) return request
    const fault = findStoringFault(submissions, submission.arrivedMs)
    if (fault !== null) return fault
    isVerifying = true
    const verifying = deps.verifyEvidence(request, tenant).finally(end)
    const evidence = await inTime(verifying)
    if (evidence === null) return refusals.evidence
    return offer(deps, submission, request, evidence)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'invalid_body') return refuse('body', error)
    // More evidence waits than is verified: the client sends it again.
    const isOwn = error.code === 'rate_limited'
    return isOwn
      ? { ...refuse('registration_rate', error), limitedTenantId: tenant.tenantId }
      : refuse('registrations', error)
  } finally {
    if (!isVerifying) end()
  }
}

/** Parses the body of a verified tenant and judges its challenge. */
function readRequest(
  { submissions, challengeKeys }: RegistrationDeps,
  bytes: Buffer,
  { tenantId }: Tenant,
): InstallRequest | Refusal {
  const parsed = parseInstall(bytes, tenantId)
  if (!parsed.ok) {
    const detail = 'The body is not a valid registration.'
    return refuse('body', new Problem('invalid_body', detail, { errors: parsed.errors }))
  }
  const { body } = parsed
  const receivedAtMs = submissions.decide.wallMs()
  const challenge = decodeChallenge(body.challenge)!
  const challengeFault = findChallengeFault(challenge, challengeKeys, receivedAtMs)
  // Nothing else bounds for how long a captured body without evidence could be sent again.
  if (challengeFault !== null && body.evidence.provider === 'none') return refusals.challenge
  return {
    tenantId,
    deviceId: body.device_id,
    challenge,
    challengeFault,
    app: body.app ?? null,
    deviceModel: body.device_model ?? '',
    evidence: body.evidence,
    receivedAtMs,
  }
}

/** @returns null when the time is over; the evidence is verified to its end all the same */
async function inTime(verifying: Promise<VerifiedEvidence>): Promise<VerifiedEvidence | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), evidenceTimeoutMs)
  })
  try {
    return await Promise.race([verifying, late])
  } finally {
    clearTimeout(timer)
  }
}

function offer(
  deps: RegistrationDeps,
  { response, body: sent, arrivedMs }: Submission,
  request: InstallRequest,
  evidence: VerifiedEvidence,
): Refusal | null {
  const { submissions, observe } = deps
  const { intakes, decide } = submissions
  const tenant = findRegistrar(sent, signatureOf(response), decide)
  if ('kind' in tenant) return tenant
  const [root] = tenant.installRoots
  if (root === undefined) return refusals.rootMissing
  const { head, body, eventId, answer } = makeRegistration(request, evidence, root)
  const requestId = requestIdOf(response)
  const { tenantId, telemetryStream } = tenant
  const bytes = toWaiterBytes(head, body)
  const respond = (settlement: Settlement) => {
    if (settlement.fault !== null) {
      const refusal = { ...refusals.notStored, verifiedTenantId: tenantId, eventId }
      refuseRegistration(deps, response, refusal, sent)
      return
    }
    submissions.addToBacklog(telemetryStream, settlement.sequence, tenantId, bytes)
    observe.registered(evidence, decide.nowMs() - arrivedMs)
    replyAccepted(response, answer, { requestId, rateLimit: null, close: submissions.stopping() })
  }
  const isOffered = intakes.offer({
    head,
    body,
    bytes,
    // Its time limit counts from here: the evidence had its own.
    arrivedMs: decide.nowMs(),
    response,
    requestId,
    acceptance: { telemetryStream, eventId },
    span: null,
    respond,
  })
  return isOffered ? null : refusals.overload
}
