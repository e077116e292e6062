/**
 * The verdict token: what an edge answered of an event, as a JWT that the backend of the app
 * verifies by itself (RFC 7519, ES256). An app cannot change it, and it answers the one question
 * whose nonce it has.
 */
import { type KeyObject, sign } from 'node:crypto'
import { verdictLifetimeSeconds } from '#shared/core/base/limits/tenants.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import type { VerdictRequest } from './verdict-request.ts'

/** How strong the evidence of the phone is: of the install token that the event came with. */
export type VerdictAttestation = { provider: string; level: string; verdict: string }

/** Of an event that came without an install token. */
export const noAttestation: VerdictAttestation = {
  provider: 'none',
  level: 'none',
  verdict: 'none',
}

export type VerdictClaims = {
  /** The service: the setting SERVICE_ISSUER. */
  iss: string
  /** The tenant's id. */
  aud: string
  /** The device's id. */
  sub: string
  /** The session, the event and the user; the last is absent where the event named none. */
  sid: string
  evt: string
  usr?: string
  /** The audience and the nonce of the request. */
  purpose: string
  nonce: string
  /** The action and the score, as the ingest call answered them. */
  act: Action
  scr: number
  att: VerdictAttestation
  /** Seconds since 1970. */
  iat: number
  exp: number
}

/** What a verdict is about. */
export type Verdict = {
  tenantId: string
  deviceId: string
  sessionId: string
  userId: string | undefined
  eventId: string
  request: VerdictRequest
  score: number
  action: Action
  attestation: VerdictAttestation
  /** When the event was received, in ms since 1970. */
  receivedAtMs: number
}

export function toVerdictClaims(issuer: string, verdict: Verdict): VerdictClaims {
  const { attestation, request } = verdict
  const issuedAt = Math.floor(verdict.receivedAtMs / 1000)
  return {
    iss: issuer,
    aud: verdict.tenantId,
    sub: verdict.deviceId,
    sid: verdict.sessionId,
    evt: verdict.eventId,
    ...(verdict.userId === undefined ? {} : { usr: verdict.userId }),
    purpose: request.audience,
    nonce: request.nonce,
    act: verdict.action,
    scr: verdict.score,
    att: {
      provider: attestation.provider,
      level: attestation.level,
      verdict: attestation.verdict,
    },
    iat: issuedAt,
    exp: issuedAt + verdictLifetimeSeconds,
  }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs claims with one key. */
export type VerdictSigner = { kid: string; sign: (claims: VerdictClaims) => string }

/**
 * @param key a private key on P-256
 * @returns a signer of compact JWTs: three base64url parts
 */
export function createVerdictSigner(kid: string, key: KeyObject): VerdictSigner {
  const head = encode({ alg: 'ES256', kid, typ: 'JWT' })
  return {
    kid,
    sign: (claims) => {
      const input = `${head}.${encode(claims)}`
      const made = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
      return `${input}.${made.toString('base64url')}`
    },
  }
}
