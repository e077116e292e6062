/**
 * Decides on one submission, from its raw bytes to the event to store: the checks of the public
 * contract in their order, the first failure ends it. It does no I/O. Nothing of a body is scored,
 * stored or returned before its signature is verified.
 */
import { toEventId } from '#shared/core/base/ids.ts'
import { ingestBytesMin } from '#shared/core/base/limits/ingest.ts'
import { undecidedRetryAfterSeconds } from '#shared/core/base/limits/stream.ts'
import type { FairShares } from '#shared/core/http/fair-shares.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type RateLimitFields, takeToken, toRateLimitFields } from '#shared/core/http/rate-limit.ts'
import { type HashedBody, hashIdentifiers } from '#shared/core/identity/sent-identifiers.ts'
import {
  type EventEvidence,
  toEventInstall,
  toEventSignals,
} from '#shared/core/installs/event-evidence.ts'
import type { RevokedSerials } from '#shared/core/installs/revoked-serials.ts'
import {
  applyListReasons,
  findListDecision,
  noListDecision,
  toListReasons,
  withoutSilenced,
} from '#shared/core/lists/lists.ts'
import type { NetworkSources } from '#shared/core/network/connection.ts'
import type { MeasuredConnection } from '#shared/core/network/measure-connection.ts'
import type { Action, Score } from '#shared/core/scoring/score.ts'
import { contradictsVerified } from '#shared/core/scoring/verified-verdicts.ts'
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'
import { type EventHeader, encodeEventHead } from '#shared/core/telemetry/event-batch.ts'
import type { Findings } from '#shared/core/telemetry/fast-path.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { findForcedScore } from '#shared/core/telemetry/sandbox.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { noAttestation, type VerdictAttestation } from '#shared/core/verdicts/verdict-token.ts'
import type { ActivePolicy } from '#shared/io/tenants/directory/active-policies.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { type AcceptedFacts, findVerdict, toAnswer } from './accepted-answer.ts'
import { type MeasureEvent, measureRequest } from './network/measure-request.ts'
import { type Refusal, refusals, refuse, refuseInstall, toVerified } from './refusals.ts'
import type { IssueVerdict, VerdictResult } from './verdicts/issue-verdict.ts'
import {
  type Credentials,
  findSender,
  isOwnDevice,
  type Sender,
  type VerifyDeps,
} from './verify-sender.ts'

/** An accepted submission. It counts once it is stored in the stream. */
export type Acceptance = {
  kind: 'accepted'
  tenantId: string
  /** The number of the tenant's telemetry stream. */
  telemetryStream: number
  receivedAtMs: number
  eventId: string
  deviceId: string
  sdkVersion: string
  score: number
  action: Action
  /** The text before the body in a batch, as `encodeEventHead` returns it. */
  head: string
  /** The body to store where it is not the signed one: hashes stand for its identifiers. */
  hashedBody: HashedBody | null
  /** The body of the response: JSON in ASCII. */
  answer: string
  platform: Platform
  unknownSignals: number
  /** What became of the request for a verdict token; null when there was none. */
  verdict: VerdictResult | null
  /** Rate limit fields of a tenant with a rate. */
  rateLimit: RateLimitFields | null
}

/** Platforms as a metric label. */
type Platform = 'android' | 'ios' | 'other'

/** State of this edge that a decision depends on. */
export type DecideDeps = VerifyDeps & {
  /** Whether the tenant's backlog of undecided events is below its limit. */
  mayWait: (tenant: Tenant) => boolean
  /** The shares of what this edge can take, in bytes. */
  shares: Pick<FairShares, 'note' | 'take'>
  /** The monotonic clock. */
  nowMs: () => number
  /** The status list in force; left out or null, nothing is known to be revoked. */
  revoked?: () => RevokedSerials | null
  /** What addresses are looked up in; left out or null, nothing is measured. */
  network?: () => NetworkSources | null
  /** Makes verdict tokens; left out, there is no key to sign them with. */
  issueVerdict?: IssueVerdict
}

/** Whether the signature of the submission was valid. */
export function isVerified(decision: Acceptance | Refusal): boolean {
  return decision.kind === 'accepted' || decision.verifiedTenantId !== undefined
}

/**
 * Decides on a submission without evidence of its own.
 * @param named the tenant that the body names; undefined when it was not looked for yet
 */
export function decideSubmission(
  body: Buffer,
  credentials: Credentials,
  deps: DecideDeps,
  named?: string | null,
): Acceptance | Refusal {
  const admitted = admitSubmission(body, credentials, deps, named)
  return 'kind' in admitted ? admitted : decideAdmitted(body, admitted, deps, { evidence: null })
}

/** A sender whose signature is valid, within the limits of its tenant. */
export type Admitted = { sender: Sender; rateLimit: RateLimitFields | null }

/** The checks that come before anything in the body or its evidence is read. */
export function admitSubmission(
  body: Buffer,
  credentials: Credentials,
  deps: DecideDeps,
  named?: string | null,
): Admitted | Refusal {
  const sender = findSender(body, credentials, deps, named)
  if ('kind' in sender) return sender
  const { tenant } = sender
  const cost = { events: 1, bytes: Math.max(ingestBytesMin, body.length) }
  const { refusal, rateLimit } = takeQuota(tenant, cost, deps)
  return refusal === null ? { sender, rateLimit } : toVerified(refusal, tenant.tenantId, rateLimit)
}

/**
 * Decides on an admitted submission.
 * @param beside the evidence of `X-Service-Attestation`, verified for the sender, null without it;
 *   and the client's address, without which none is measured
 */
export function decideAdmitted(
  body: Buffer,
  { sender, rateLimit }: Admitted,
  deps: DecideDeps,
  { evidence, readAddress }: { evidence: EventEvidence | null; readAddress?: () => string },
): Acceptance | Refusal {
  const measure = measureRequest(deps.network?.() ?? null, sender, readAddress)
  const decision = decideVerified(body, { sender, deps, rateLimit, evidence, measure })
  if (decision.kind === 'accepted' || decision.reason === 'install_device') return decision
  return toVerified(decision, sender.tenant.tenantId, rateLimit)
}

/** What a request costs its tenant. */
type Cost = { events: number; bytes: number }

/** Takes from the tenant's limits. @returns a refusal when it is over one */
export function takeQuota(
  tenant: Tenant,
  cost: Cost,
  deps: DecideDeps,
): { refusal: Refusal | null; rateLimit: RateLimitFields | null } {
  const { limiter } = tenant
  const nowMs = deps.nowMs()
  const token =
    limiter === null ? null : takeToken(limiter.bucket, limiter.rate, nowMs, cost.events)
  const rateLimit = limiter === null ? null : toRateLimitFields(limiter.bucket, limiter.rate)
  const refusal =
    token?.allowed === false
      ? refuseLimited(tenant, 'rate', token.retryAfterSeconds)
      : findBytesOverLimit(cost.bytes, tenant, deps)
  return { refusal, rateLimit }
}

/**
 * A tenant with a rate of its own has that rate, whatever others send. Others may use what is left.
 * @returns a refusal when the tenant is over its limit of bytes or its backlog limit
 */
function findBytesOverLimit(cost: number, tenant: Tenant, deps: DecideDeps): Refusal | null {
  const { byteLimiter } = tenant
  if (!deps.mayWait(tenant)) {
    return refuseLimited(tenant, 'undecided', undecidedRetryAfterSeconds)
  }
  const nowMs = deps.nowMs()
  if (byteLimiter === null) {
    const retryAfterSeconds = deps.shares.take(tenant.tenantId, cost, nowMs)
    return retryAfterSeconds === 0 ? null : refuseLimited(tenant, 'share', retryAfterSeconds)
  }
  const token = takeToken(byteLimiter.bucket, byteLimiter.rate, nowMs, cost)
  if (!token.allowed) return refuseLimited(tenant, 'byte_rate', token.retryAfterSeconds)
  deps.shares.note(tenant.tenantId, cost, nowMs)
  return null
}

type DecideFacts = {
  sender: Sender
  deps: DecideDeps
  rateLimit: RateLimitFields | null
  /** What came in `X-Service-Attestation` of an install; null or left out without it. */
  evidence?: EventEvidence | null
  /** Where its events come from. */
  measure: MeasureEvent
}

/** Parses and scores the body of a verified sender that is within its limits. */
export function decideVerified(body: Buffer, given: DecideFacts): Acceptance | Refusal {
  const { sender, deps, rateLimit } = given
  const { tenant } = sender
  const { policy } = tenant
  const parsed = parseTelemetry(body, tenant.tenantId)
  if (!parsed.ok) {
    const detail = 'The body is not a valid telemetry submission.'
    return refuse('body', new Problem('invalid_body', detail, { errors: parsed.errors }))
  }
  // The answer of every token that does not count: the sender proved another device.
  if (!isOwnDevice(sender, parsed.telemetry.device_id)) return refuseInstall('install_device')
  if (policy === null || !tenant.lists.usable()) return refusals.tenantUnusable
  // Suppressions and lists are evaluated at the instant that is stored.
  const receivedAtMs = deps.wallMs()
  const measured = given.measure(parsed.telemetry)
  const forced = findForced(parsed.telemetry, tenant, policy)
  // A test device of a sandbox keeps its action: no list is asked.
  const listed =
    forced === null
      ? findListDecision(tenant.lists, parsed.telemetry, receivedAtMs, measured?.listed)
      : noListDecision
  const observed = toServerSignals(given, parsed.telemetry, measured)
  const serverSignals = withoutSilenced(observed, listed)
  const sent = { telemetry: parsed.telemetry, serverSignals, receivedAtMs }
  const score = applyListReasons(forced ?? scoreTelemetry(sent, policy), toListReasons(listed))
  // The lease may have expired since the signature was verified.
  if (!deps.leaseValid()) return refusals.lease
  const counter = given.evidence?.counter ?? null
  return accept(body, parsed, {
    sender,
    tenant,
    issueVerdict: deps.issueVerdict,
    attestation: toAttestation(sender, serverSignals, given.evidence ?? null),
    evidence: given.evidence ?? null,
    score,
    serverSignals,
    measured,
    counter,
    receivedAtMs,
    rateLimit,
  })
}

const limitDetails = {
  rate: 'The tenant sends more than its rate.',
  byte_rate: 'The tenant sends more bytes than its rate.',
  share: 'Other tenants are sending too, and the tenant sends more than its share.',
  undecided: 'Too much of what the tenant has sent waits to be processed.',
} as const

const retryAfterSecondsMax = 3_600

function refuseLimited(
  { tenantId }: Tenant,
  reason: keyof typeof limitDetails,
  seconds: number,
): Refusal {
  const retryAfterSeconds = Math.min(seconds, retryAfterSecondsMax)
  const problem = new Problem('rate_limited', limitDetails[reason], { retryAfterSeconds })
  return { kind: 'refused', reason, problem, limitedTenantId: tenantId }
}

/**
 * What the service saw of the sender and of its connection, and whether the client claims a better
 * verdict.
 */
function toServerSignals(
  { sender, deps, evidence }: DecideFacts,
  { signals }: Telemetry,
  measured: MeasuredConnection | null,
): ServerSignals {
  const { install, attestation: own } = sender
  const ofInstall =
    install === null
      ? {}
      : toEventSignals(toEventInstall(install.facts), evidence ?? null, deps.revoked?.() ?? null)
  const attestation = { ...ofInstall, ...own }
  const connection = measured?.signals ?? {}
  const from = Object.keys(connection).length === 0 ? {} : { connection }
  if (!contradictsVerified(signals as Signals, { attestation })) return { attestation, ...from }
  return { attestation: { ...attestation, claim_contradicted: true }, ...from }
}

type Sent = {
  telemetry: Telemetry
  serverSignals: ServerSignals
  receivedAtMs: number
}

function findForced(
  { device_id: deviceId }: Telemetry,
  { environment }: Tenant,
  { thresholds }: ActivePolicy,
): Score | null {
  return environment === 'sandbox' ? findForcedScore(deviceId, thresholds) : null
}

function scoreTelemetry(
  { telemetry, serverSignals, receivedAtMs }: Sent,
  { score }: ActivePolicy,
): Score {
  const { sdk_version: sdkVersion, platform } = telemetry.sdk_meta
  const context = { sdkVersion, platform, receivedAtMs }
  return score(telemetry.signals as Signals, context, serverSignals)
}

function toPlatform(platform: string): Platform {
  return platform === 'android' || platform === 'ios' ? platform : 'other'
}

type EventFacts = AcceptedFacts & {
  sender: Sender
  serverSignals: ServerSignals
  measured: MeasuredConnection | null
  /** Of a valid App Attest assertion. */
  counter: number | null
  rateLimit: RateLimitFields | null
}

/**
 * What a verdict token says of the install: what holds for this request. A token is no part of the
 * event that is stored, so evidence that nothing stands behind takes its credit too.
 */
function toAttestation(
  { install }: Sender,
  { attestation }: ServerSignals,
  evidence: EventEvidence | null,
): VerdictAttestation {
  if (install === null) return noAttestation
  const { p: provider, v: verdict, l: level, f: found } = install.facts
  // The event's own evidence failed, or a certificate was revoked since.
  const isLost =
    found.verified === true && (attestation?.verified !== true || evidence?.verdict === 'rejected')
  return isLost ? { provider, verdict: 'rejected', level: 'none' } : { provider, verdict, level }
}

type InstallHead = NonNullable<EventHeader['install']>

const withCounter = (head: InstallHead, counter: number | null): InstallHead =>
  counter === null ? head : { ...head, counter }

function accept(
  body: Buffer,
  parsed: { telemetry: Telemetry } & Findings,
  facts: EventFacts,
): Acceptance {
  const { sender, tenant, score, serverSignals, measured, receivedAtMs } = facts
  const { install } = sender
  const { telemetry } = parsed
  const eventId = toEventId(body)
  const verdict = findVerdict(telemetry, eventId, facts)
  const hashedBody = hashIdentifiers(body, telemetry, tenant.addressKey)
  const header: EventHeader = {
    event_id: eventId,
    ...(hashedBody === null ? {} : { body_id: toEventId(hashedBody.body) }),
    tenant_id: tenant.tenantId,
    received_at: receivedAtMs,
    rasp_score: score.score,
    rasp_action: score.action,
    reasons: score.reasons,
    policy_version: tenant.policyVersion,
    policy_hash: tenant.policyHash,
    epoch: tenant.epoch,
    ...(parsed.inexactNumbers ? { inexact_numbers: true } : {}),
    server_signals: serverSignals,
    ...(install === null ? {} : { install: withCounter(install.head, facts.counter) }),
    ...(measured === null ? {} : { connection: measured.head }),
  }
  const head = encodeEventHead(header, (hashedBody?.body ?? body).length)
  return {
    kind: 'accepted',
    tenantId: tenant.tenantId,
    telemetryStream: tenant.telemetryStream,
    receivedAtMs,
    eventId,
    deviceId: telemetry.device_id,
    sdkVersion: telemetry.sdk_meta.sdk_version,
    score: score.score,
    action: score.action,
    head,
    hashedBody,
    answer: toAnswer(telemetry, eventId, facts, verdict?.token ?? null),
    platform: toPlatform(telemetry.sdk_meta.platform),
    unknownSignals: parsed.unknownSignals,
    verdict: verdict?.result ?? null,
    rateLimit: facts.rateLimit,
  }
}
