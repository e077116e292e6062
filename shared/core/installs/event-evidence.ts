/**
 * Evidence of one event, in the header `X-Service-Attestation`: that the attested key of the
 * install signed this body, or that Google says so of this body. It is looked at only after the
 * event's own signature held. What the platform has signed for this body counts, whatever it says.
 * Any other evidence counts as none: nothing stands behind it, and a body that is sent again with
 * such a header must get the answer of the event that is stored.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { decodeBase64 } from '#shared/core/attestation/encodings.ts'
import type { AttestationReason } from '#shared/core/attestation/reasons.ts'
import { eventEvidenceCharactersMax } from '#shared/core/base/limits/attestation.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import type { VerifiedEvidence } from './evidence-signals.ts'
import type { InstallFacts } from './install-token.ts'
import type { InstallProvider } from './registration.ts'
import type { RevokedSerials } from './revoked-serials.ts'

/** What is known of the install that signed the event, from its token. */
export type EventInstall = {
  provider: InstallProvider
  /** Package or bundle id. */
  appId: string | null
  /** The attested key: SubjectPublicKeyInfo in base64. */
  publicKey: string | null
  /** Hashes of the serials above the leaf, of `hashSerial`. */
  serials: readonly string[]
  /** Server signals of category `attestation` that hold for the token's life. */
  signals: CategorySignals
}

export const toEventInstall = ({ p, a, k, s, f }: InstallFacts): EventInstall => ({
  provider: p,
  appId: a,
  publicKey: k,
  serials: s,
  signals: f,
})

export type EventEvidence = {
  provider: InstallProvider
  /** `none`: there was no room to verify it. */
  verdict: 'verified' | 'rejected' | 'none'
  /** Of the first failed step; null when verified. */
  reason: string | null
  /** Of an App Attest assertion that is valid. */
  counter: number | null
  /** What a Play token says; empty for a signature. */
  signals: CategorySignals
  /** The attested key or Google signed it for this body. */
  proven: boolean
}

/** Five parts: a compact JWE. */
const playForm = /^[\w-]+(?:\.[\w-]*){4}$/

/** Whether a header has one of the forms, whatever it proves. */
export const isEvidenceForm = (header: string): boolean =>
  header.length <= eventEvidenceCharactersMax &&
  (playForm.test(header) || (decodeBase64(header)?.length ?? 0) > 0)

/** @returns the token, when the header has the form of a Play token and may be parsed */
export const findPlayToken = (header: string): string | null =>
  header.length <= eventEvidenceCharactersMax && header.includes('.') ? header : null

/**
 * Verifies the signature of an attested key over a body: ECDSA in DER over SHA-256 of the body, as
 * Android's and Apple's key stores make it, or an App Attest assertion.
 * @param header base64 of either alphabet
 */
export function checkEventSignature(
  header: string,
  body: Buffer,
  { provider, publicKey }: Pick<EventInstall, 'provider' | 'publicKey'>,
  apps: readonly AttestedApp[],
): EventEvidence {
  const reject = (reason: AttestationReason) => toEvidence(provider, 'rejected', { reason })
  if (header.length > eventEvidenceCharactersMax) return reject('too_large')
  const key = publicKey === null ? null : openKey(publicKey)
  if (publicKey === null) return reject('key_missing')
  if (key === null) return reject('unsupported_algorithm')
  const bytes = decodeBase64(header, eventEvidenceCharactersMax)
  if (bytes === null || bytes.length === 0) return reject('malformed')
  if (provider !== 'app_attest') {
    const holds = verify('sha256', body, { key, dsaEncoding: 'der' }, bytes)
    return holds ? toEvidence(provider, 'verified', { proven: true }) : reject('signature_invalid')
  }
  const check = checkAssertion({ assertion: bytes, publicKey: key, clientData: body, apps })
  const proven = check.level !== 'none'
  if (check.reason !== null) {
    return toEvidence(provider, 'rejected', { reason: check.reason, proven })
  }
  return toEvidence(provider, 'verified', { counter: check.facts.counter as number, proven })
}

const toEvidence = (
  provider: InstallProvider,
  verdict: EventEvidence['verdict'],
  known: Partial<EventEvidence> = {},
): EventEvidence => ({
  provider,
  verdict,
  reason: null,
  counter: null,
  signals: {},
  proven: false,
  ...known,
})

/** @returns null when it is no key of P-256, which is the one kind that signs events */
function openKey(publicKey: string): KeyObject | null {
  try {
    const der = Buffer.from(publicKey, 'base64')
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null
  } catch {
    return null
  }
}

/**
 * The attested key as a token carries it: one of P-256, in 124 characters. Others, such as RSA keys
 * of 736, sign no events and would make a token too long.
 */
export const toTokenKey = (publicKey: string | null): string | null =>
  publicKey === null || openKey(publicKey) === null ? null : publicKey

/** @param verified of a Play token whose nonce is the hash of the body; null without room for it */
export function toPlayEvidence(verified: VerifiedEvidence | null): EventEvidence {
  if (verified === null) return toEvidence('play_integrity', 'none', { reason: 'no_room' })
  const { verdict, reason, signals, proven } = verified
  return toEvidence('play_integrity', verdict, { reason, signals, proven })
}

/** Evidence that speaks against the phone takes away what says that a phone is genuine. */
function withoutFavour({ verified: _, ...signals }: CategorySignals): CategorySignals {
  return Object.hasOwn(signals, 'hardware_backed')
    ? { ...signals, hardware_backed: false }
    : signals
}

/**
 * The server signals of one event: those of its install, changed by the event's own evidence and by
 * what was revoked since the registration.
 * @param evidence null when none came with it
 * @param revoked the status list in force; null without one
 */
export function toEventSignals(
  { signals, serials }: Pick<EventInstall, 'signals' | 'serials'>,
  evidence: EventEvidence | null,
  revoked: RevokedSerials | null,
): CategorySignals {
  const isRevoked = revoked !== null && serials.some((serial) => revoked.has(serial))
  const own = addEvidence(signals, evidence)
  return isRevoked ? { ...withoutFavour(own), revoked: true } : own
}

function addEvidence(signals: CategorySignals, evidence: EventEvidence | null): CategorySignals {
  if (evidence === null || !evidence.proven) return signals
  if (evidence.verdict === 'verified') {
    // A registration that was rejected stays so: a good signature shows the same key again.
    return { ...signals, ...evidence.signals }
  }
  return { ...withoutFavour(signals), ...evidence.signals, rejected: true }
}
