/**
 * Decides on one submission, from its raw bytes to the event that is to be stored: the checks of
 * the public contract in their order, each ending the request. Nothing waits here and nothing is
 * written. Nothing of a body is scored, kept or repeated before its signature has been verified.
 */
import type { KeyObject } from 'node:crypto'
import { toEventId } from '#shared/core/ids.ts'
import { retryAfterSeconds } from '#shared/core/limits.ts'
import { encodeEventHead } from '#shared/core/messages.ts'
import { Problem } from '#shared/core/problem.ts'
import { takeToken } from '#shared/core/rate-limit.ts'
import { findForcedScore } from '#shared/core/sandbox.ts'
import type { Action, Score } from '#shared/core/scoring.ts'
import { verifySignature } from '#shared/core/signature.ts'
import {
  parseTelemetry,
  type Signals,
  scanTelemetry,
  type Telemetry,
} from '#shared/core/telemetry.ts'
import type { CompiledPolicy, Tenant } from '#shared/io/tenant-copy.ts'

/** Why a submission was refused; a metric label beside the problem's code. */
export type RefusalReason =
  | 'content_type'
  | 'too_large'
  | 'signature_missing'
  | 'signature_invalid'
  | 'rate'
  | 'body'
  | 'lease'
  | 'tenant_unusable'
  | 'disconnected'
  | 'overload'
  | 'not_stored'

export type Refusal = { kind: 'refused'; reason: RefusalReason; problem: Problem }

/** A submission that deserves its place in the stream; it counts once it is stored there. */
export type Acceptance = {
  kind: 'accepted'
  tenantId: string
  action: Action
  /** What stands before the body in the batch. */
  head: string
  /** The answer's body. */
  answer: string
  platform: Platform
  unknownSignals: number
}

/** The platforms we tell apart in metrics. */
export type Platform = 'android' | 'ios' | 'other'

/** What a decision needs to know of this edge at this moment. */
export type EdgeView = {
  findTenant: (tenantId: string) => Tenant | undefined
  leaseValid: () => boolean
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
  tenantUnusable: unavailable('tenant_unusable', 'The tenant cannot be served at the moment.'),
  disconnected: unavailable('disconnected', 'Telemetry cannot be stored at the moment.'),
  overload: unavailable('overload', 'More telemetry is waiting to be stored than can be held.'),
  notStored: unavailable('not_stored', 'Telemetry could not be stored; it may be sent again.'),
} as const satisfies Record<string, Refusal>

/**
 * @param signature the value of `X-Service-Signature`
 */
export function decideTelemetry(
  body: Buffer,
  signature: string | undefined,
  edge: EdgeView,
): Acceptance | Refusal {
  if (signature === undefined || signature === '') return refusals.signatureMissing
  // Whose credentials may be stale cannot tell a wrong signature from one under a new secret.
  if (!edge.leaseValid()) return refusals.lease
  const scan = scanTelemetry(body)
  const tenant = scan.tenantId === null ? undefined : edge.findTenant(scan.tenantId)
  const unverified = verifyTenant(body, signature, tenant, edge.decoyKey)
  if (tenant === undefined || unverified !== null) return unverified ?? refusals.signatureInvalid
  const { limiter, policy } = tenant
  if (limiter !== null) {
    const token = takeToken(limiter.bucket, limiter.rate, edge.nowMs())
    if (!token.allowed) return refuseRate(token.retryAfterSeconds)
  }
  const parsed = parseTelemetry(body, scan)
  if (!parsed.ok) {
    if (parsed.otherTenant) return refusals.signatureInvalid
    const detail = 'The body is not a valid telemetry submission.'
    return refuse('body', new Problem('invalid_body', detail, { errors: parsed.errors }))
  }
  if (policy === null) return refusals.tenantUnusable
  // One moment for all: what is suppressed at it, and what is stored as it.
  const receivedAtMs = edge.wallMs()
  const score = scoreTelemetry(parsed.telemetry, tenant, policy, receivedAtMs)
  // Verified against what was current a moment ago: it must be so still, now that it is stored.
  if (!edge.leaseValid()) return refusals.lease
  return accept(body, parsed, { tenant, score, receivedAtMs })
}

/**
 * Whether the signature is the tenant's. A tenant that is unknown, suspended or between two secrets
 * is answered exactly as a wrong signature: there is no secret that anybody could rightly sign
 * with.
 * @returns null when it is, else the refusal
 */
function verifyTenant(
  body: Buffer,
  signature: string,
  tenant: Tenant | undefined,
  decoyKey: KeyObject,
): Refusal | null {
  const verified = verifySignature(body, signature, tenant?.key ?? decoyKey)
  if (tenant === undefined || tenant.status !== 'active') return refusals.signatureInvalid
  // Our own fault, which says nothing of the signature: its clients must not give up on a 401.
  if (tenant.fault === 'unsealable_secret' || tenant.fault === 'unreadable_entry') {
    return refusals.tenantUnusable
  }
  return verified && tenant.key !== null ? null : refusals.signatureInvalid
}

function refuseRate(seconds: number): Refusal {
  const detail = 'The tenant sends more than its rate.'
  return refuse('rate', new Problem('rate_limited', detail, { retryAfterSeconds: seconds }))
}

function scoreTelemetry(
  telemetry: Telemetry,
  tenant: Tenant,
  policy: CompiledPolicy,
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
  parsed: { telemetry: Telemetry; unknownSignals: number },
  facts: { tenant: Tenant; score: Score; receivedAtMs: number },
): Acceptance {
  const { tenant, score } = facts
  const eventId = toEventId(body)
  const head = encodeEventHead({
    event_id: eventId,
    tenant_id: tenant.tenantId,
    received_at: facts.receivedAtMs,
    rasp_score: score.score,
    rasp_action: score.action,
    reasons: score.reasons,
    policy_version: tenant.policyVersion,
    policy_hash: tenant.policyHash,
    epoch: tenant.epoch,
  })
  let flags = ''
  for (const { code } of score.reasons) flags += flags === '' ? `"${code}"` : `,"${code}"`
  const answer =
    `{"status":"accepted","rasp_score":${score.score},"rasp_action":"${score.action}",` +
    `"event_id":"${eventId}","flags":[${flags}]}`
  return {
    kind: 'accepted',
    tenantId: tenant.tenantId,
    action: score.action,
    head,
    answer,
    platform: toPlatform(parsed.telemetry.sdk_meta.platform),
    unknownSignals: parsed.unknownSignals,
  }
}
