/**
 * The address that browsers use, PUBLIC_URL: what it allows, the session's cookie, and whether an
 * unsafe request comes from a page of ours.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isSecureOrLocal } from '#shared/core/http/local-hosts.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { oidcAttemptMs } from '#shared/core/operators/oidc-attempt.ts'
import { sessionMaxMs } from '#shared/core/operators/session-times.ts'

export type PublicOrigin = {
  /** The token of the session's cookie, or null. */
  readCookie: (request: FastifyRequest) => string | null
  setCookie: (reply: FastifyReply, token: string) => void
  clearCookie: (reply: FastifyReply) => void
  /** The same of the cookie of an attempt to sign in through the identity provider. */
  readAttempt: (request: FastifyRequest) => string | null
  setAttempt: (reply: FastifyReply, attempt: string) => void
  clearAttempt: (reply: FastifyReply) => void
  /** The page that the identity provider returns to. */
  toReturnUrl: () => string
  /** @throws Problem insecure_origin, where a session would travel in the clear */
  requireSecure: () => void
  /**
   * Checks an unsafe request that acts by a cookie, or sets one.
   * @throws Problem origin_refused
   */
  requireSameOrigin: (request: FastifyRequest) => void
  /** The page that accepts an invitation; the token is in the fragment, which no log has. */
  toInvitationUrl: (token: string) => string
}

/** @param publicUrl PUBLIC_URL, with a path where a proxy serves the console under one */
export function createPublicOrigin(publicUrl: () => string): PublicOrigin {
  const read = () => new URL(publicUrl())
  const toBase = () => publicUrl().replace(/\/+$/, '')
  const isSecure = () => read().protocol === 'https:'
  const toName = (what = 'session') => `${isSecure() ? '__Host-' : ''}di_${what}`
  const toOptions = () =>
    ({ path: '/', httpOnly: true, sameSite: 'strict', secure: isSecure() }) as const
  return {
    readCookie: (request) => request.cookies[toName()] ?? null,
    setCookie: (reply, token) => {
      reply.setCookie(toName(), token, { ...toOptions(), maxAge: sessionMaxMs / 1_000 })
    },
    clearCookie: (reply) => {
      reply.clearCookie(toName(), toOptions())
    },
    readAttempt: (request) => request.cookies[toName('attempt')] ?? null,
    setAttempt: (reply, attempt) => {
      reply.setCookie(toName('attempt'), attempt, {
        ...toOptions(),
        maxAge: oidcAttemptMs / 1_000,
      })
    },
    clearAttempt: (reply) => {
      reply.clearCookie(toName('attempt'), toOptions())
    },
    toReturnUrl: () => `${toBase()}/oidc`,
    requireSecure: () => {
      const { origin } = read()
      if (isSecureOrLocal(origin)) return
      const detail =
        `Signing in needs https: PUBLIC_URL is ${origin}, and plain http is allowed on localhost ` +
        'only. Serve the console by https and set PUBLIC_URL to that address.'
      throw new Problem('insecure_origin', detail)
    },
    requireSameOrigin: ({ headers }) => {
      const { origin } = read()
      const site = headers['sec-fetch-site']
      if (headers.origin === origin && (site === undefined || site === 'same-origin')) return
      throw new Problem('origin_refused', describe(headers.origin, origin, site))
    },
    toInvitationUrl: (token) => `${toBase()}/invite#${token}`,
  }
}

function describe(sent: string | undefined, origin: string, site: string | string[] | undefined) {
  if (sent === origin) {
    return `The request comes from another site (Sec-Fetch-Site: ${String(site).slice(0, 40)}).`
  }
  const what = sent === undefined ? 'has no Origin header' : `has the Origin ${sent.slice(0, 200)}`
  return (
    `The request ${what}, and PUBLIC_URL is ${origin}. When you use the console at another ` +
    "address, set PUBLIC_URL to the address in the browser's address bar and restart the console."
  )
}
