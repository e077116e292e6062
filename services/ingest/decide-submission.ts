/**
 * Decides on one submission, from its raw bytes to the event that is to be stored: the checks of
 * the public contract in their order, each ending the request. Nothing waits here and nothing is
 * written. Nothing of a body is scored, kept or repeated before its signature has been verified.
 */
import type { KeyObject } from 'node:crypto'
import { toEventId } from '#shared/core/base/ids.ts'
import { retryAfterSeconds } from '#shared/core/base/limits/http.ts'
import { ingestBytesMin } from '#shared/core/base/limits/ingest.ts'
import { undecidedRetryAfterSeconds } from '#shared/core/base/limits/stream.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { type RateLimitFields, takeToken, toRateLimitFields } from '#shared/core/http/rate-limit.ts'
import type { Action, Score } from '#shared/core/scoring/score.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { type EventHeader, encodeEventHead } from '#shared/core/telemetry/event-batch.ts'
import type { Findings } from '#shared/core/telemetry/fast-path.ts'
import { parseTelemetry } from '#shared/core/telemetry/parse-telemetry.ts'
import { findForcedScore } from '#shared/core/telemetry/sandbox.ts'
import type { verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'
import type { ActivePolicy } from '#shared/io/tenants/directory/active-policies.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'

/** Why a submission was refused; a metric label beside the problem's code. */
export type RefusalReason =
  | 'content_type'
  | 'too_large'
  | 'body_cut'
  | 'signature_missing'
  | 'signature_invalid'
  | 'rate'
  | 'byte_rate'
  | 'undecided'
  | 'body'
  | 'lease'
  | 'not_synced'
  | 'tenant_unusable'
  | 'disconnected'
  | 'overload'
  | 'not_stored'

export type Refusal = {
  kind: 'refused'
  reason: RefusalReason
  problem: Problem
  /** Where an authenticated tenant with a rate stands. */
  rateLimit?: RateLimitFields
  /** The tenant that is over a limit of its own. */
  limitedTenantId?: string
  /**
   * Set when the signature was that of the secret which the tenant's last rotation replaced. The
   * answer says nothing of it, in its bytes or in its time.
   */
  retired?: { tenantId: string; last4: string }
}

/** A submission that deserves its place in the stream; it counts once it is stored there. */
export type Acceptance = {
  kind: 'accepted'
  tenantId: string
  receivedAtMs: number
  action: Action
  /** What stands before the body in the batch. */
  head: string
  /** The answer's body. */
  answer: string
  platform: Platform
  unknownSignals: number
  /** Where a tenant with a rate stands. */
  rateLimit: RateLimitFields | null
}

/** The platforms we tell apart in metrics. */
export type Platform = 'android' | 'ios' | 'other'

/** What a decision needs to know of this edge at this moment. */
export type EdgeDeps = {
  findTenant: (tenantId: string) => Tenant | undefined
  leaseValid: () => boolean
  /** Whether every tenant that there is can be found. */
  synced: () => boolean
  /** Whether more of a tenant may wait undecided. */
  mayWait: (tenantId: string, share: number) => boolean
  /** One HMAC over the body, whatever the header is. */
  verify: typeof verifySignature
  /** Stands in for the secret of tenants that cannot be verified, so that they cost the same. */
  decoyKey: KeyObject
  /** The monotonic clock. */
  nowMs: () => number
  /** The wall clock, in ms since 1970. */
  wallMs: () => number
}

/** A refusal that is the same for everybody is made once. */
function refuse(reason: RefusalReason, problem: Problem): Refusal {
  return { kind: 'refused', reason, problem }
}

function unavailable(reason: RefusalReason, detail: string): Refusal {
  return refuse(reason, new Problem('unavailable', detail, { retryAfterSeconds }))
}

export const refusals = {
  contentType: refuse(
    'content_type',
    new Problem('unsupported_media_type', 'Send application/json without any content encoding.'),
  ),
  tooLarge: refuse('too_large', new Problem('body_too_large', 'The body is larger than 64 KiB.')),
  bodyCut: refuse(
    'body_cut',
    new Problem('request_timeout', 'Too many bodies are incomplete, and this one is the oldest.'),
  ),
  signatureMissing: refuse(
    'signature_missing',
    new Problem('signature_missing', 'The header X-Service-Signature is required.'),
  ),
  signatureInvalid: refuse(
    'signature_invalid',
    new Problem(
      'signature_invalid',
      'The signature is not that of this body under the secret of an active tenant.',
    ),
  ),
  lease: unavailable('lease', 'Credentials cannot be confirmed as current at the moment.'),
  notSynced: unavailable('not_synced', 'Not all credentials are known at the moment.'),
  tenantUnusable: unavailable('tenant_unusable', 'The tenant cannot be served at the moment.'),
  disconnected: unavailable('disconnected', 'Telemetry cannot be stored at the moment.'),
  overload: unavailable('overload', 'More telemetry is waiting to be stored than can be held.'),
  notStored: unavailable('not_stored', 'Telemetry could not be stored; it may be sent again.'),
} as const satisfies Record<string, Refusal>

/**
 * @param signature the value of `X-Service-Signature`
 */
export function decideSubmission(
  body: Buffer,
  signature: string | undefined,
  edge: EdgeDeps,
): Acceptance | Refusal {
  if (signature === undefined || signature === '') return refusals.signatureMissing
  // Whose credentials may be stale cannot tell a wrong signature from one under a new secret.
  if (!edge.leaseValid()) return refusals.lease
  const tenantId = findTenant(body)
  const tenant = tenantId === null ? undefined : edge.findTenant(tenantId)
  const unverified = verifyTenant(body, signature, tenant, edge)
  if (tenant === undefined || unverified !== null) return unverified ?? refusals.signatureInvalid
  const { limiter } = tenant
  const nowMs = edge.nowMs()
  const token = limiter === null ? null : takeToken(limiter.bucket, limiter.rate, nowMs)
  const rateLimit = limiter === null ? null : toRateLimitFields(limiter.bucket, limiter.rate)
  const decision =
    token?.allowed === false
      ? refuseLimited(tenant, 'rate', token.retryAfterSeconds)
      : (findBytesOverLimit(body, tenant, edge) ??
        decideVerified(body, { tenant, edge, rateLimit }))
  if (decision.kind === 'accepted') return decision
  return rateLimit === null ? decision : { ...decision, rateLimit }
}

/** @returns a refusal when the tenant is over its rate in bytes, or has too many waiting */
function findBytesOverLimit(body: Buffer, tenant: Tenant, edge: EdgeDeps): Refusal | null {
  const { tenantId, byteLimiter, undecidedShare } = tenant
  if (!edge.mayWait(tenantId, undecidedShare)) {
    return refuseLimited(tenant, 'undecided', undecidedRetryAfterSeconds)
  }
  const cost = Math.max(ingestBytesMin, body.length)
  const token = takeToken(byteLimiter.bucket, byteLimiter.rate, edge.nowMs(), cost)
  return token.allowed ? null : refuseLimited(tenant, 'byte_rate', token.retryAfterSeconds)
}

/** What is left to check and to do once the tenant is known and within its rate. */
function decideVerified(
  body: Buffer,
  facts: { tenant: Tenant; edge: EdgeDeps; rateLimit: RateLimitFields | null },
): Acceptance | Refusal {
  const { tenant, edge, rateLimit } = facts
  const { policy } = tenant
  const parsed = parseTelemetry(body, tenant.tenantId)
  if (!parsed.ok) {
    const detail = 'The body is not a valid telemetry submission.'
    return refuse('body', new Problem('invalid_body', detail, { errors: parsed.errors }))
  }
  if (policy === null) return refusals.tenantUnusable
  // One moment for all: what is suppressed at it, and what is stored as it.
  const receivedAtMs = edge.wallMs()
  const score = scoreTelemetry(parsed.telemetry, tenant, policy, receivedAtMs)
  // Verified against what was current a moment ago: it must be so still, now that it is stored.
  if (!edge.leaseValid()) return refusals.lease
  return accept(body, parsed, { tenant, score, receivedAtMs, rateLimit })
}

/**
 * Whether the signature is the tenant's. A tenant that is unknown, suspended or between two secrets
 * is answered exactly as a wrong signature: there is no secret that anybody could rightly sign
 * with. What is verified costs one HMAC; what is not costs two, whoever it says it is: the second
 * is over the secret that a rotation replaced, or the decoy.
 * @returns null when it is, else the refusal
 */
function verifyTenant(
  body: Buffer,
  signature: string,
  tenant: Tenant | undefined,
  edge: EdgeDeps,
): Refusal | null {
  const { decoyKey, verify } = edge
  const active = tenant?.status === 'active'
  const key = tenant?.key ?? null
  if (verify(body, signature, key ?? decoyKey) && active && key !== null) return null
  const retired = tenant?.retired ?? null
  const late = verify(body, signature, retired?.key ?? decoyKey) && retired !== null
  // Our own faults, which say nothing of the signature: its clients must not give up on a 401.
  if (!edge.synced()) return refusals.notSynced
  if (active && tenant.fault !== null && tenant.fault !== 'policy_missing') {
    return refusals.tenantUnusable
  }
  if (!late || tenant === undefined) return refusals.signatureInvalid
  const { kind, reason, problem } = refusals.signatureInvalid
  return { kind, reason, problem, retired: { tenantId: tenant.tenantId, last4: retired.last4 } }
}

const limitDetails = {
  rate: 'The tenant sends more than its rate.',
  byte_rate: 'The tenant sends more bytes than its rate.',
  undecided: 'Too much of what the tenant has sent waits to be processed.',
} as const

/** Problems of limits, made once each: a tenant over its limit is refused thousands of times. */
const limitProblems = new Map<string, Problem>()
/** Waits are told apart up to this many seconds, so that the map stays small. */
const retryAfterSecondsMax = 3_600

function refuseLimited(
  { tenantId }: Tenant,
  reason: keyof typeof limitDetails,
  seconds: number,
): Refusal {
  const retryAfterSeconds = Math.min(seconds, retryAfterSecondsMax)
  const key = `${reason} ${retryAfterSeconds}`
  let problem = limitProblems.get(key)
  if (problem === undefined) {
    problem = new Problem('rate_limited', limitDetails[reason], { retryAfterSeconds })
    limitProblems.set(key, problem)
  }
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
  return policy.score(telemetry.signals as Signals, { sdkVersion, platform, receivedAtMs })
}

function toPlatform(platform: string): Platform {
  return platform === 'android' || platform === 'ios' ? platform : 'other'
}

function accept(
  body: Buffer,
  parsed: { telemetry: Telemetry } & Findings,
  facts: {
    tenant: Tenant
    score: Score
    receivedAtMs: number
    rateLimit: RateLimitFields | null
  },
): Acceptance {
  const { tenant, score } = facts
  const eventId = toEventId(body)
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
  let flags = ''
  for (const { code } of score.reasons) flags += flags === '' ? `"${code}"` : `,"${code}"`
  const answer =
    `{"status":"accepted","rasp_score":${score.score},"rasp_action":"${score.action}",` +
    `"event_id":"${eventId}","flags":[${flags}]}`
  return {
    kind: 'accepted',
    tenantId: tenant.tenantId,
    receivedAtMs: facts.receivedAtMs,
    action: score.action,
    head,
    answer,
    platform: toPlatform(parsed.telemetry.sdk_meta.platform),
    unknownSignals: parsed.unknownSignals,
    rateLimit: facts.rateLimit,
  }
}
