// An attempt through the identity provider: the values derived from its secret, and its settings.
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  oidcAttemptMs,
  oidcClockSkewMs,
  oidcSecretBytes,
  parseAttemptCookie,
  toAttemptCookie,
  toOidcChecks,
} from '#shared/core/operators/oidc-attempt.ts'
import { readConsoleConfig, toOidcSettings } from '../../../services/console/config.ts'

const attempt = () => ({ secret: randomBytes(oidcSecretBytes), begunAtMs: 1_700_000_000_000 })

describe('an attempt', () => {
  it('is read from its cookie for ten minutes, and from as far ahead as clocks differ', () => {
    const begun = attempt()
    const cookie = toAttemptCookie(begun)
    const read = (afterMs: number) => parseAttemptCookie(cookie, begun.begunAtMs + afterMs)
    expect(read(0)).toEqual(begun)
    expect(read(oidcAttemptMs - 1)).toEqual(begun)
    expect(read(oidcAttemptMs)).toBeNull()
    // Another console, whose clock is behind.
    expect(read(-oidcClockSkewMs)).toEqual(begun)
    expect(read(-oidcClockSkewMs - 1)).toBeNull()
    for (const text of [null, '', 'x', `${cookie}x`, cookie.replace('.', '..')]) {
      expect(parseAttemptCookie(text, begun.begunAtMs), String(text)).toBeNull()
    }
  })

  it('has checks that differ by every input and hide the secret', () => {
    const begun = attempt()
    const later = { ...begun, begunAtMs: begun.begunAtMs + 1 }
    const all = [
      toOidcChecks(begun, 'in', ''),
      toOidcChecks(begun, 'up', ''),
      toOidcChecks(begun, 'up', 'ses_1'),
      toOidcChecks(begun, 'up', 'ses_2'),
      toOidcChecks(later, 'in', ''),
      toOidcChecks(attempt(), 'in', ''),
    ]
    const texts = all.flatMap(({ state, nonce, verifier }) => [state.slice(3), nonce, verifier])
    expect(new Set(texts).size).toBe(texts.length)
    expect(texts).not.toContain(begun.secret.toString('base64url'))
    for (const { verifier } of all) expect(verifier).toMatch(/^[\w-]{43}$/)
    expect(toOidcChecks(begun, 'up', 'ses_1')).toEqual(all[2])
  })
})

describe('the settings of the identity provider', () => {
  const required = { MASTER_KEY: randomBytes(32).toString('base64'), ADMIN_TOKEN: 'a'.repeat(16) }
  const provider = { OIDC_ISSUER: 'https://login.example.com', OIDC_CLIENT_ID: 'console' }
  const read = (env: Record<string, string>) => readConsoleConfig({ ...required, ...env })

  it('are absent, or an issuer and a client, with or without a secret', () => {
    expect(toOidcSettings(read({}))).toBeNull()
    expect(toOidcSettings(read(provider))).toEqual({
      issuer: 'https://login.example.com',
      clientId: 'console',
      clientSecret: undefined,
      trustsEmails: false,
      stepsUp: true,
    })
    const others = { OIDC_TRUST_EMAILS_OF: provider.OIDC_ISSUER, OIDC_STEP_UP: 'totp' }
    expect(toOidcSettings(read({ ...provider, ...others }))).toMatchObject({
      trustsEmails: true,
      stepsUp: false,
    })
    const withSecret = { ...provider, OIDC_CLIENT_SECRET: 'secret', OIDC_ONLY: '1' }
    expect(toOidcSettings(read(withSecret))).toMatchObject({ clientSecret: 'secret' })
    expect(read(withSecret).OIDC_ONLY).toBe(true)
    expect(toOidcSettings(read({ ...provider, OIDC_ISSUER: 'http://127.0.0.1:9/' }))).not.toBeNull()
  })

  it.each([
    [{ OIDC_ISSUER: provider.OIDC_ISSUER }, 'must be set together'],
    [{ OIDC_CLIENT_ID: 'console' }, 'must be set together'],
    [{ OIDC_CLIENT_SECRET: 'secret' }, 'OIDC_CLIENT_SECRET needs'],
    [{ OIDC_ONLY: '1' }, 'OIDC_ONLY needs OIDC_ISSUER'],
    [{ ...provider, OIDC_TRUST_EMAILS_OF: '1' }, 'OIDC_TRUST_EMAILS_OF must be the text'],
    [{ ...provider, OIDC_TRUST_EMAILS_OF: `${provider.OIDC_ISSUER}/` }, 'must be the text'],
    [{ OIDC_TRUST_EMAILS_OF: provider.OIDC_ISSUER }, 'OIDC_TRUST_EMAILS_OF must be the text'],
    [{ ...provider, OIDC_STEP_UP: 'yes' }, 'OIDC_STEP_UP'],
    [{ ...provider, OIDC_ISSUER: 'http://login.example.com' }, 'must be an https URL'],
    [{ ...provider, OIDC_ISSUER: 'https://login.example.com/?a=b' }, 'must have no query'],
  ])('%j is rejected', (env, why) => {
    expect(() => read(env as unknown as Record<string, string>)).toThrow(why)
  })
})
