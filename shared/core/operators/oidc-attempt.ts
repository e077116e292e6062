/**
 * One attempt to sign in, or to step up, through an identity provider. The browser alone keeps its
 * secret, in a cookie; state, nonce and PKCE verifier are derived from it, so strangers who begin
 * attempts leave nothing behind. What an attempt is for is part of what is derived: an answer to
 * one cannot be used for another.
 */
import { createHmac, hash } from 'node:crypto'

/** `in`: to sign in; `up`: to prove again who has a session. */
export type OidcPurpose = 'in' | 'up'

export type OidcAttempt = { secret: Buffer; begunAtMs: number }

/** What the provider's answer is held against. */
export type OidcChecks = { state: string; nonce: string; verifier: string }

export const oidcSecretBytes = 32
/** How long a person may take at the provider. */
export const oidcAttemptMs = 600_000
/** Clocks of the provider and of consoles may differ by so much. */
export const oidcClockSkewMs = 30_000

const cookiePattern = /^([0-9a-z]{1,11})\.([A-Za-z0-9_-]{43})$/

/** The attempt as the cookie has it, before the proof that the console made it. */
export const toAttemptCookie = ({ secret, begunAtMs }: OidcAttempt): string =>
  `${begunAtMs.toString(36)}.${secret.toString('base64url')}`

/** @returns null when the text is no attempt, or is one that is over */
export function parseAttemptCookie(text: string | null, nowMs: number): OidcAttempt | null {
  const match = cookiePattern.exec(text ?? '')
  if (match === null) return null
  const begunAtMs = Number.parseInt(match[1]!, 36)
  const ageMs = nowMs - begunAtMs
  if (ageMs < -oidcClockSkewMs || ageMs >= oidcAttemptMs) return null
  return { secret: Buffer.from(match[2]!, 'base64url'), begunAtMs }
}

/**
 * Derives the checks of an attempt. The state begins with the purpose, which the page that the
 * provider returns to reads.
 * @param sessionId the session that steps up; empty for a sign-in
 */
export function toOidcChecks(
  { secret, begunAtMs }: OidcAttempt,
  purpose: OidcPurpose,
  sessionId: string,
): OidcChecks {
  const derive = (what: string) =>
    createHmac('sha256', secret)
      .update(JSON.stringify([what, purpose, sessionId, begunAtMs]))
      .digest('base64url')
  return {
    state: `${purpose}.${derive('state')}`,
    nonce: derive('nonce'),
    verifier: derive('verifier'),
  }
}

/** Names an attempt without its secret, to know which were used. */
export const toAttemptKey = ({ secret }: OidcAttempt): string => hash('sha256', secret, 'base64url')
