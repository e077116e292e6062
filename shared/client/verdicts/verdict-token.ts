/**
 * Reads a verdict token without believing it: its form and its claims. Only the one form that the
 * service makes is read, so a token has one spelling, and no header chooses how it is verified.
 */
import { verdictTokenCharactersMax } from '#shared/core/base/limits/client.ts'
import { type VerdictFault, VerdictVerificationError } from '../errors.ts'
import type { Action } from '../service-types.ts'

/** A token whose signature is still to be verified. */
export type UnverifiedToken = {
  keyId: string
  /** What is signed. */
  data: Uint8Array<ArrayBuffer>
  /** 64 bytes: r and s. */
  signature: Uint8Array<ArrayBuffer>
  /** The claims, as a text of JSON. */
  claims: string
}

/** What the service said of one event. */
export type Verdict = {
  action: Action
  /** 0 to 100. */
  score: number
  tenantId: string
  deviceId: string
  sessionId: string
  /** The user that the telemetry named; null where it named none. */
  userId: string | null
  /** `GET /v1/di/events/{event_id}` says more. */
  eventId: string
  /** The evidence of the phone: who made it, how strong it is, and whether it holds. */
  attestation: { provider: string; level: string; verdict: string }
  /** The `audience` of the request. */
  purpose: string
  nonce: string
  issuer: string
  /** In ms since 1970. */
  issuedAtMs: number
  expiresAtMs: number
}

const fault = (name: VerdictFault) => new VerdictVerificationError(name)

/** Of 64 bytes in base64url without padding: four bits of the last character are zero. */
const signaturePattern = /^[A-Za-z0-9_-]{85}[AQgw]$/
const partPattern = /^[A-Za-z0-9_-]+$/

/**
 * @param token a compact JWT
 * @throws VerdictVerificationError when it is none that the service makes
 */
export function readToken(token: string): UnverifiedToken {
  const [head = '', body = '', signature = '', ...rest] =
    token.length > verdictTokenCharactersMax ? [] : token.split('.')
  if (!partPattern.test(head) || !partPattern.test(body) || rest.length > 0) {
    throw fault('malformed')
  }
  const header = parseObject(decodeText(head))
  if (header === null) throw fault('malformed')
  // By an allow-list of one: `none`, or a MAC with the public key as its secret, is never tried.
  if (header.alg !== 'ES256') throw fault('algorithm')
  const isPlain = header.typ === undefined || header.typ === 'JWT'
  if (typeof header.kid !== 'string' || !isPlain || header.crit !== undefined) {
    throw fault('malformed')
  }
  if (!signaturePattern.test(signature)) throw fault('forged')
  return {
    keyId: header.kid,
    data: new TextEncoder().encode(`${head}.${body}`),
    signature: decode(signature),
    claims: decodeText(body),
  }
}

/** @throws VerdictVerificationError when a claim is missing: the service makes every one */
export function readClaims(text: string): Verdict {
  const claims = parseObject(text)
  const attestation = toObject(claims?.att)
  if (claims === null || attestation === null) throw fault('malformed')
  const textOf = (value: unknown): string => {
    if (typeof value === 'string') return value
    throw fault('malformed')
  }
  const numberOf = (value: unknown): number => {
    if (Number.isFinite(value)) return value as number
    throw fault('malformed')
  }
  return {
    action: textOf(claims.act) as Action,
    score: numberOf(claims.scr),
    tenantId: textOf(claims.aud),
    deviceId: textOf(claims.sub),
    sessionId: textOf(claims.sid),
    userId: claims.usr === undefined ? null : textOf(claims.usr),
    eventId: textOf(claims.evt),
    attestation: {
      provider: textOf(attestation.provider),
      level: textOf(attestation.level),
      verdict: textOf(attestation.verdict),
    },
    purpose: textOf(claims.purpose),
    nonce: textOf(claims.nonce),
    issuer: textOf(claims.iss),
    issuedAtMs: numberOf(claims.iat) * 1000,
    expiresAtMs: numberOf(claims.exp) * 1000,
  }
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(bytes, (character) => character.charCodeAt(0))
}

function decodeText(text: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(decode(text))
  } catch {
    throw fault('malformed')
  }
}

type Members = Record<string, unknown>

const toObject = (value: unknown): Members | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : null

function parseObject(text: string): Members | null {
  try {
    return toObject(JSON.parse(text))
  } catch {
    return null
  }
}
