/**
 * Decides on one submission, from its raw bytes to the event to store: the checks of the public
 * contract in their order, the first failure ends it. It does no I/O. Nothing of a body is scored,
 * stored or returned before its signature is verified.
 */
import type { KeyObject } from 'node:crypto'
import { toEventId } from '#shared/core/base/ids.ts'
import { retryAfterSeconds } from '#shared/core/base/limits/http.ts'
import { ingestBytesMin } from '#shared/core/base/limits/ingest.ts'
import { undecidedRetryAfterSeconds } from '#shared/core/base/limits/stream.ts'
import type { FairShares } from '#shared/core/http/fair-shares.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type RateLimitFields, takeToken, toRateLimitFields } from '#shared/core/http/rate-limit.ts'
import { applyListReason, findListEntry, toListReason } from '#shared/core/lists/lists.ts'
import type { Action, Score } from '#shared/core/scoring/score.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { type EventHeader, encodeEventHead } from '#shared/core/telemetry/event-batch.ts'
import type { Findings } from '#shared/core/telemetry/fast-path.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { findForcedScore } from '#shared/core/telemetry/sandbox.ts'
import type { verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import { noAttestation, type VerdictAttestation } from '#shared/core/verdicts/verdict-token.ts'
import { framingFaults } from '#shared/io/http/incoming/request-framing.ts'
import type { ActivePolicy } from '#shared/io/tenants/directory/active-policies.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { type AcceptedFacts, findVerdict, toAnswer } from './accepted-answer.ts'
import type { IssueVerdict, VerdictResult } from './verdicts/issue-verdict.ts'

/** Why a submission was refused, for a metric label and the log. */
type RefusalReason =
  | 'content_type'
  | 'too_large'
  | 'body_cut'
  | 'framing'
  | 'signature_missing'
  | 'signature_invalid'
  | 'rate'
  | 'byte_rate'
  | 'share'
  | 'undecided'
  | 'body'
  | 'lease'
  | 'not_synced'
  | 'tenant_unusable'
  | 'disconnected'
  | 'overload'
  | 'not_stored'
  | 'defect'

export type Refusal = {
  kind: 'refused'
  reason: RefusalReason
  problem: Problem
  /** Rate limit fields of a verified tenant with a rate. */
  rateLimit?: RateLimitFields
  /** The tenant, when it is over its own limit. */
  limitedTenantId?: string
  /** The tenant, when the signature was valid. */
  verifiedTenantId?: string
  /** The event of a valid submission that cannot be stored. */
  eventId?: string
  /**
   * Set when the signature was made with the secret that the last rotation replaced. Neither bytes
   * nor time of the response reveal it.
   */
  retired?: { tenantId: string; last4: string }
}

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
export type DecideDeps = {
  findTenant: (tenantId: string) => Tenant | undefined
  /** Whether the copy of the credentials is proven current. */
  leaseValid: () => boolean
  /** Whether the copy has every tenant, and the key of each. */
  keysKnown: () => boolean
  /** Whether the tenant's backlog of undecided events is below its limit. */
  mayWait: (tenant: Tenant) => boolean
  /** The shares of what this edge can take, in bytes. */
  shares: Pick<FairShares, 'note' | 'take'>
  /** Computes one HMAC over the body for any header. */
  verify: typeof verifySignature
  /** Replaces the key of tenants that have none, so that every 401 takes the same time. */
  decoyKey: KeyObject
  /** The monotonic clock. */
  nowMs: () => number
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
  /** Makes verdict tokens; left out, there is no key to sign them with. */
  issueVerdict?: IssueVerdict
}

export function refuse(reason: RefusalReason, problem: Problem): Refusal {
  return { kind: 'refused', reason, problem }
}

function unavailable(reason: RefusalReason, detail: string): Refusal {
  return refuse(reason, new Problem('unavailable', detail, { retryAfterSeconds }))
}

export const refusals = {
  contentType: refuse(
    'content_type',
    new Problem(
      'unsupported_media_type',
      'Send Content-Type: application/json without any content encoding.',
    ),
  ),
  tooLarge: refuse('too_large', new Problem('body_too_large', 'The body is larger than 64 KiB.')),
  batchTooLarge: refuse(
    'too_large',
    new Problem('body_too_large', 'The batch is larger than 512 KiB: send its events in two.'),
  ),
  bodyCut: refuse(
    'body_cut',
    new Problem('request_timeout', 'Too many bodies are incomplete, and this one is the oldest.'),
  ),
  framing: refuse('framing', framingFaults.chunks.problem),
  signatureMissing: refuse(
    'signature_missing',
    new Problem(
      'signature_missing',
      'Send the header X-Service-Signature: the base64 of the HMAC-SHA256 of the body, keyed with ' +
        'the HMAC secret of the tenant.',
    ),
  ),
  signatureInvalid: refuse(
    'signature_invalid',
    new Problem(
      'signature_invalid',
      'The signature is not that of this body under the secret of an active tenant. Compare ' +
        'received.sha256 with the SHA-256 of the bytes that you signed: when they are equal, ' +
        'tenant_id at the top of the body or the secret is wrong. `di signature check` and the ' +
        'console find the mistake.',
    ),
  ),
  lease: unavailable('lease', 'Credentials cannot be confirmed as current at the moment.'),
  notSynced: unavailable('not_synced', 'Not all credentials are known at the moment.'),
  tenantUnusable: unavailable('tenant_unusable', 'The tenant cannot be served at the moment.'),
  disconnected: unavailable('disconnected', 'Telemetry cannot be stored at the moment.'),
  overload: unavailable('overload', 'More telemetry is waiting to be stored than can be held.'),
  notStored: unavailable('not_stored', 'Telemetry could not be stored; it may be sent again.'),
  defect: refuse('defect', new Problem('internal_error', 'The request could not be processed.')),
} as const satisfies Record<string, Refusal>

/** Whether the signature of the submission was valid. */
export function isVerified(decision: Acceptance | Refusal): boolean {
  return decision.kind === 'accepted' || decision.verifiedTenantId !== undefined
}

/**
 * Decides on a submission.
 * @param signature the value of `X-Service-Signature`
 * @param named the tenant that the body names; undefined when it was not looked for yet
 */
export function decideSubmission(
  body: Buffer,
  signature: string | undefined,
  deps: DecideDeps,
  named?: string | null,
): Acceptance | Refusal {
  const tenant = findSender(body, signature, deps, named)
  if ('kind' in tenant) return tenant
  const cost = { events: 1, bytes: Math.max(ingestBytesMin, body.length) }
  const { refusal, rateLimit } = takeQuota(tenant, cost, deps)
  const decision = refusal ?? decideVerified(body, { tenant, deps, rateLimit })
  return decision.kind === 'accepted' ? decision : toVerified(decision, tenant.tenantId, rateLimit)
}

/** @returns the tenant whose signature is valid, or the refusal */
export function findSender(
  body: Buffer,
  signature: string | undefined,
  deps: DecideDeps,
  named: string | null | undefined,
): Tenant | Refusal {
  if (signature === undefined || signature === '') return refusals.signatureMissing
  // With stale credentials a wrong signature looks like one made with a new secret.
  if (!deps.leaseValid()) return refusals.lease
  const tenantId = named === undefined ? findTenant(body) : named
  const tenant = tenantId === null ? undefined : deps.findTenant(tenantId)
  const unverified = verifyTenant(body, signature, tenant, deps)
  if (tenant === undefined || unverified !== null) return unverified ?? refusals.signatureInvalid
  return tenant
}

/** A refusal of a verified tenant. */
export function toVerified(
  refusal: Refusal,
  tenantId: string,
  rateLimit: RateLimitFields | null,
): Refusal {
  const verified = { ...refusal, verifiedTenantId: tenantId }
  return rateLimit === null ? verified : { ...verified, rateLimit }
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

/**
 * Parses and scores the body of a verified tenant that is within its limits.
 * @param facts.attestation of the install token that it came with; none when left out
 */
export function decideVerified(
  body: Buffer,
  facts: {
    tenant: Tenant
    deps: DecideDeps
    rateLimit: RateLimitFields | null
    attestation?: VerdictAttestation
  },
): Acceptance | Refusal {
  const { tenant, deps, rateLimit, attestation = noAttestation } = facts
  const { policy } = tenant
  const parsed = parseTelemetry(body, tenant.tenantId)
  if (!parsed.ok) {
    const detail = 'The body is not a valid telemetry submission.'
    return refuse('body', new Problem('invalid_body', detail, { errors: parsed.errors }))
  }
  if (policy === null || !tenant.lists.usable()) return refusals.tenantUnusable
  // Suppressions and lists are evaluated at the instant that is stored.
  const receivedAtMs = deps.wallMs()
  const score = scoreTelemetry(parsed.telemetry, tenant, policy, receivedAtMs)
  // The lease may have expired since the signature was verified.
  if (!deps.leaseValid()) return refusals.lease
  return accept(body, parsed, {
    tenant,
    issueVerdict: deps.issueVerdict,
    score,
    receivedAtMs,
    rateLimit,
    attestation,
  })
}

/**
 * Verifies the signature. A tenant that is unknown, suspended or between two secrets gets the same
 * refusal as a wrong signature. A valid signature costs one HMAC and every refused one costs two:
 * the second uses the secret that a rotation replaced, or the decoy. Only a valid signature gets an
 * answer that depends on its tenant: while the key of one tenant is not known, every signature that
 * is not valid gets a 503, whatever tenant it names.
 * @returns null when the signature is valid, else the refusal
 */
function verifyTenant(
  body: Buffer,
  signature: string,
  tenant: Tenant | undefined,
  deps: DecideDeps,
): Refusal | null {
  const { decoyKey, verify } = deps
  const active = tenant?.status === 'active'
  const key = tenant?.key ?? null
  if (verify(body, signature, key ?? decoyKey) && active && key !== null) return null
  const retired = tenant?.retired ?? null
  const stale = verify(body, signature, retired?.key ?? decoyKey) && retired !== null
  // This edge is at fault, not the signature: a 401 would make the client give up.
  if (!deps.keysKnown()) return refusals.notSynced
  if (!stale || tenant === undefined) return refusals.signatureInvalid
  const { kind, reason, problem } = refusals.signatureInvalid
  return { kind, reason, problem, retired: { tenantId: tenant.tenantId, last4: retired.last4 } }
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

function scoreTelemetry(
  telemetry: Telemetry,
  tenant: Tenant,
  policy: ActivePolicy,
  receivedAtMs: number,
): Score {
  if (tenant.environment === 'sandbox') {
    const forced = findForcedScore(telemetry.device_id, policy.thresholds)
    if (forced !== null) return forced
  }
  const { sdk_version: sdkVersion, platform } = telemetry.sdk_meta
  const context = { sdkVersion, platform, receivedAtMs }
  const scored = policy.score(telemetry.signals as Signals, context)
  const listed = findListEntry(tenant.lists.find, telemetry, receivedAtMs)
  return listed === null ? scored : applyListReason(scored, toListReason(listed))
}

function toPlatform(platform: string): Platform {
  return platform === 'android' || platform === 'ios' ? platform : 'other'
}

function accept(
  body: Buffer,
  parsed: { telemetry: Telemetry } & Findings,
  facts: AcceptedFacts & { rateLimit: RateLimitFields | null },
): Acceptance {
  const { tenant, score } = facts
  const { telemetry } = parsed
  const eventId = toEventId(body)
  const verdict = findVerdict(telemetry, eventId, facts)
  const header: EventHeader = {
    event_id: eventId,
    tenant_id: tenant.tenantId,
    received_at: facts.receivedAtMs,
    rasp_score: score.score,
    rasp_action: score.action,
    reasons: score.reasons,
    policy_version: tenant.policyVersion,
    policy_hash: tenant.policyHash,
    epoch: tenant.epoch,
    ...(parsed.inexactNumbers ? { inexact_numbers: true } : {}),
  }
  const head = encodeEventHead(header, body.length)
  return {
    kind: 'accepted',
    tenantId: tenant.tenantId,
    telemetryStream: tenant.telemetryStream,
    receivedAtMs: facts.receivedAtMs,
    eventId,
    deviceId: telemetry.device_id,
    sdkVersion: telemetry.sdk_meta.sdk_version,
    score: score.score,
    action: score.action,
    head,
    answer: toAnswer(telemetry, eventId, facts, verdict?.token ?? null),
    platform: toPlatform(telemetry.sdk_meta.platform),
    unknownSignals: parsed.unknownSignals,
    verdict: verdict?.result ?? null,
    rateLimit: facts.rateLimit,
  }
}
