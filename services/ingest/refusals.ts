/**
 * Refusals of ingest: reasons for metrics and the log, and the problems that clients get. Requests
 * that cannot be verified get one of two answers: by whether they came with an install token, which
 * is known to their sender, and by nothing else.
 */
import { retryAfterSeconds } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { RateLimitFields } from '#shared/core/http/rate-limit.ts'
import type { TokenFault } from '#shared/core/installs/install-token.ts'
import { framingFaults } from '#shared/io/http/incoming/request-framing.ts'

/** Why a submission was refused, for a metric label and the log. */
export type RefusalReason =
  | 'content_type'
  | 'too_large'
  | 'body_cut'
  | 'framing'
  | 'signature_missing'
  | 'signature_invalid'
  | 'shared_secret_off'
  | InstallFault
  | 'rate'
  | 'byte_rate'
  | 'share'
  | 'undecided'
  | 'registration_rate'
  | 'registrations'
  | 'challenge'
  | 'evidence'
  | 'evidence_form'
  | 'root_missing'
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

/** Why an install token beside a body does not count. */
export type InstallFault =
  | TokenFault
  /** It was made for another tenant. */
  | 'install_tenant'
  /** It was made for another device than the body's. */
  | 'install_device'
  /** Its install must register again. */
  | 'install_expired'
  /** It is genuine, and the body is signed with something else than its install key. */
  | 'install_key'
  /** It came with a batch, which no install sends. */
  | 'install_batch'

export function refuse(reason: RefusalReason, problem: Problem): Refusal {
  return { kind: 'refused', reason, problem }
}

function unavailable(reason: RefusalReason, detail: string): Refusal {
  return refuse(reason, new Problem('unavailable', detail, { retryAfterSeconds }))
}

const signatureInvalid = new Problem(
  'signature_invalid',
  'The signature is not that of this body under the secret of an active tenant. Compare ' +
    'received.sha256 with the SHA-256 of the bytes that you signed: when they are equal, ' +
    'tenant_id at the top of the body or the secret is wrong. `di signature check` and the ' +
    'console find the mistake.',
)

const installInvalid = new Problem(
  'signature_invalid',
  'The signature is not that of this body under the install key of a valid token of its device. ' +
    'Register the install again and use its new token and key. The same answer comes for every ' +
    'token that does not count.',
)

/** One answer for every request with an install token that cannot be verified. */
export const refuseInstall = (reason: InstallFault | 'signature_invalid'): Refusal =>
  refuse(reason, installInvalid)

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
  signatureInvalid: refuse('signature_invalid', signatureInvalid),
  sharedSecretOff: refuse('shared_secret_off', signatureInvalid),
  installBatch: refuse(
    'install_batch',
    new Problem(
      'malformed_request',
      'A batch is signed with the secret of the tenant, so X-Service-Install has no place beside ' +
        'it. Send the event of an install alone.',
      { errors: [{ path: 'X-Service-Install', message: 'must not be sent with a batch' }] },
    ),
  ),
  evidenceForm: refuse(
    'evidence_form',
    new Problem('malformed_request', 'X-Service-Attestation cannot be read.', {
      errors: [
        {
          path: 'X-Service-Attestation',
          message:
            'must be base64 of a signature or of an assertion over the body, or a Play Integrity ' +
            'token, as it is',
        },
      ],
    }),
  ),
  lease: unavailable('lease', 'Credentials cannot be confirmed as current at the moment.'),
  notSynced: unavailable('not_synced', 'Not all credentials are known at the moment.'),
  tenantUnusable: unavailable('tenant_unusable', 'The tenant cannot be served at the moment.'),
  registrations: unavailable(
    'registrations',
    'More installs register at the moment than this edge takes.',
  ),
  evidence: unavailable('evidence', 'Evidence cannot be verified at the moment.'),
  rootMissing: unavailable('root_missing', 'The tenant cannot register installs at the moment.'),
  challenge: refuse(
    'challenge',
    new Problem('invalid_body', 'The body is not a valid registration.', {
      errors: [
        {
          path: '$.challenge',
          message: 'has expired, or is not of this service; get another one',
        },
      ],
    }),
  ),
  disconnected: unavailable('disconnected', 'Telemetry cannot be stored at the moment.'),
  overload: unavailable('overload', 'More telemetry is waiting to be stored than can be held.'),
  notStored: unavailable('not_stored', 'Telemetry could not be stored; it may be sent again.'),
  defect: refuse('defect', new Problem('internal_error', 'The request could not be processed.')),
} as const satisfies Record<string, Refusal>

/** A refusal of a verified tenant. */
export function toVerified(
  refusal: Refusal,
  tenantId: string,
  rateLimit: RateLimitFields | null,
): Refusal {
  const verified = { ...refusal, verifiedTenantId: tenantId }
  return rateLimit === null ? verified : { ...verified, rateLimit }
}
