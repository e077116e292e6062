/**
 * Signing in and stepping up through the identity provider. Each takes two calls of a page: one
 * that begins an attempt and names the address to go to, and one with what the provider returned.
 * Pages choose where to go afterwards, so there is no address that a stranger could put in.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import {
  type OidcAttempt,
  type OidcPurpose,
  oidcAttemptMs,
  oidcSecretBytes,
  parseAttemptCookie,
  toAttemptCookie,
  toAttemptKey,
  toOidcChecks,
} from '#shared/core/operators/oidc-attempt.ts'
import type { OidcClient, OidcIdentity } from '#shared/io/operators/oidc-client.ts'
import { OidcRefusedError, OidcUnavailableError } from '#shared/io/operators/oidc-faults.ts'
import { type ConsoleApp, type OperatorPrincipal, operatorOf } from '../../http/admin-app.ts'
import type { OperatorParts } from '../operator-deps.ts'
import { signedInSchema } from '../operator-schemas.ts'
import { callerOf, sendSignedIn } from '../session-routes.ts'
import { oidcRefusedLine, signInByOidc, stepUpByOidc } from './oidc-sign-in.ts'

/** A code of a provider and what comes with it; the longest codes known have some 2,000. */
const queryCharactersMax = 8_192
/** Attempts that were used, at some 100 bytes each; the provider takes a code once as well. */
const usedMax = 10_000

const waysSchema = z.object({
  passwords: z.boolean().describe('false: sign-in by password is switched off'),
  oidc: z
    .object({ issuer: z.string().describe('the address of the identity provider') })
    .nullable(),
})
const beginBody = z.strictObject({})
const begunSchema = z.object({ url: z.string().describe('where the browser is to go') })
const returnBody = z.strictObject({
  query: z
    .string()
    .max(queryCharactersMax)
    .describe('the query that the identity provider returned with'),
})

/** What an attempt is for; the operator and the session that step up, empty for a sign-in. */
type AttemptOf = { purpose: OidcPurpose; operatorId: string; sessionId: string }

/** What the two calls of an attempt share. */
type Attempts = {
  /** @throws Problem unavailable, rate_limited, not_found */
  begin: (
    request: FastifyRequest,
    reply: FastifyReply,
    details: AttemptOf,
  ) => Promise<{ url: string }>
  /** @throws Problem forbidden, unavailable, rate_limited, not_found */
  redeem: (
    request: FastifyRequest,
    reply: FastifyReply,
    details: AttemptOf & { query: string },
  ) => Promise<{ identity: OidcIdentity; attempt: OidcAttempt; succeeded: () => void }>
}

export function addOidcRoutes(app: ConsoleApp, parts: OperatorParts): void {
  const attempts = createAttempts(parts)
  app.get(
    '/session/ways',
    {
      schema: {
        operationId: 'listSignInWays',
        tags: ['Sessions'],
        summary: 'How people can sign in',
        response: { 200: waysSchema },
      },
    },
    async () => ({
      passwords: !parts.passwordsOff,
      oidc: parts.oidc === null ? null : { issuer: parts.oidc.issuer },
    }),
  )
  addSignIn(app, parts, attempts)
  addStepUp(app, parts, attempts)
}

function addSignIn(app: ConsoleApp, parts: OperatorParts, attempts: Attempts): void {
  const of = { purpose: 'in', operatorId: '', sessionId: '' } as const
  app.post(
    '/session/oidc',
    {
      schema: {
        operationId: 'beginOidc',
        tags: ['Sessions'],
        summary: 'Begin to sign in through the identity provider',
        description:
          'Sets the cookie of the attempt, which holds for ten minutes and one return. A 503 says ' +
          'why the identity provider cannot be used.',
        body: beginBody,
        problems: ['not_found', 'insecure_origin'],
        response: { 200: begunSchema },
      },
    },
    (request, reply) => counted(parts, () => attempts.begin(request, reply, of)),
  )
  app.post(
    '/session/oidc/return',
    {
      schema: {
        operationId: 'finishOidc',
        tags: ['Sessions'],
        summary: 'Sign in with what the identity provider returned',
        description:
          'Sets the session cookie. The account must exist or be invited; the first time its ' +
          'email must be verified by the identity provider.',
        body: returnBody,
        problems: ['not_found', 'forbidden', 'operator_exists', 'insecure_origin'],
        response: { 200: signedInSchema },
      },
    },
    (request, reply) =>
      counted(parts, async () => {
        const { query } = request.body
        const { identity, succeeded } = await attempts.redeem(request, reply, { ...of, query })
        const signedIn = await signInByOidc(parts, identity, callerOf(request))
        succeeded()
        parts.onSignIn('signed_in')
        return sendSignedIn(parts, reply, signedIn)
      }),
  )
}

function addStepUp(app: ConsoleApp, parts: OperatorParts, attempts: Attempts): void {
  app.post(
    '/session/step-up/oidc',
    {
      schema: {
        operationId: 'beginOidcStepUp',
        tags: ['Sessions'],
        summary: 'Begin to step up through the identity provider, which checks again who it is',
        body: beginBody,
        problems: ['not_found', 'step_up_refused'],
        response: { 200: begunSchema },
      },
    },
    (request, reply) => attempts.begin(request, reply, toStepUpOf(operatorOf(request.principal))),
  )
  app.post(
    '/session/step-up/oidc/return',
    {
      schema: {
        operationId: 'finishOidcStepUp',
        tags: ['Sessions'],
        summary: 'Step up with what the identity provider returned',
        description: 'Only for the session that began it, and the identity of its operator.',
        body: returnBody,
        problems: ['not_found', 'forbidden', 'step_up_refused'],
        response: { 200: signedInSchema },
      },
    },
    async (request, reply) => {
      const principal = operatorOf(request.principal)
      const of = { ...toStepUpOf(principal), query: request.body.query }
      const { identity, attempt, succeeded } = await attempts.redeem(request, reply, of)
      const { begunAtMs } = attempt
      const stepped = await stepUpByOidc(parts, principal, {
        identity,
        begunAtMs,
        address: request.ip,
      })
      succeeded()
      return sendSignedIn(parts, reply, stepped)
    },
  )
}

const toStepUpOf = ({ operator, session }: OperatorPrincipal): AttemptOf => ({
  purpose: 'up',
  operatorId: operator.operatorId,
  sessionId: session.sessionId,
})

/** Counts a sign-in that failed by the code of its problem. */
async function counted<T>(parts: OperatorParts, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem) parts.onSignIn(`oidc_${error.code}`)
    throw error
  }
}

function createAttempts(parts: OperatorParts): Attempts {
  const { origin, limits, wallMs, randomBytes, refused } = parts
  const cookies = createAttemptCookies(parts)
  const used = new LRUCache<string, true>({ max: usedMax, ttl: oidcAttemptMs })
  // Guesses of strangers at the same address do not count against an operator with a session.
  const count = ({ ip: address }: FastifyRequest, { purpose, operatorId }: AttemptOf) =>
    purpose === 'up' ? limits.beginSignedIn({ operatorId, address }) : limits.beginToken(address)
  return {
    begin: async (request, reply, details) => {
      const { purpose, sessionId } = details
      const oidc = requireOidc(parts)
      if (purpose === 'up' && !oidc.stepsUp) {
        const detail = 'The identity provider confirms nothing here: use a code of your app.'
        throw new Problem('step_up_refused', detail)
      }
      origin.requireSecure()
      count(request, details)
      const attempt = { secret: randomBytes(oidcSecretBytes), begunAtMs: wallMs() }
      const checks = toOidcChecks(attempt, purpose, sessionId)
      const options = { redirectUri: origin.toReturnUrl(), fresh: purpose === 'up' }
      const url = await oidc.toSignInUrl(checks, options).catch((error) => refuse(parts, error))
      origin.setAttempt(reply, cookies.write(attempt, details))
      return { url }
    },
    redeem: async (request, reply, details) => {
      const { purpose, sessionId, query } = details
      const oidc = requireOidc(parts)
      origin.requireSecure()
      // A beginning and a return count; both are given back when it was right.
      const counting = count(request, details)
      const attempt = cookies.read(origin.readAttempt(request), details)
      origin.clearAttempt(reply)
      const fault =
        typeof attempt === 'string' ? attempt : used.has(toAttemptKey(attempt)) ? 'used' : null
      if (typeof attempt === 'string' || fault !== null) {
        refused.note(request.ip)
        parts.log.warn({ reason: `attempt_${fault}` }, oidcRefusedLine)
        throw new Problem('forbidden', `${attemptWords[fault!]} Begin again.`)
      }
      used.set(toAttemptKey(attempt), true)
      const returned = new URL(origin.toReturnUrl())
      returned.search = query
      const checks = toOidcChecks(attempt, purpose, sessionId)
      try {
        const identity = await oidc.redeem(returned, checks)
        return { identity, attempt, succeeded: () => counting.succeeded(2) }
      } catch (error) {
        if (error instanceof OidcRefusedError) refused.note(request.ip)
        return refuse(parts, error)
      }
    },
  }
}

/**
 * The cookie of an attempt with a proof that the console made it for this purpose: a browser cannot
 * set back when it began, which a step-up is held against.
 */
function createAttemptCookies({ sealer, wallMs }: OperatorParts) {
  // On use: the routes are also added to write the document, without a key.
  const prover = () => sealer.proverOf('sign-in attempt')
  return {
    write: (attempt: OidcAttempt, { purpose, sessionId }: AttemptOf): string => {
      const text = toAttemptCookie(attempt)
      return `${text}.${prover().prove([purpose, sessionId], text)}`
    },
    /** @returns the attempt, or why the cookie has none of this purpose that goes on */
    read: (
      cookie: string | null,
      { purpose, sessionId }: AttemptOf,
    ): OidcAttempt | 'missing' | 'other' | 'over' => {
      if (cookie === null) return 'missing'
      const [, text = '', proof = ''] = /^([^.]*\.[^.]*)\.(.*)$/.exec(cookie) ?? []
      if (!prover().isProven(proof, [purpose, sessionId], text)) return 'other'
      return parseAttemptCookie(text, wallMs()) ?? 'over'
    },
  }
}

/** Why what the provider returned belongs to no attempt. */
const attemptWords = {
  missing:
    'This browser has not begun to sign in, or keeps no cookies: it must return in the same one.',
  other: 'This browser has begun another sign-in since, or one for something else.',
  over: 'This sign-in took longer than ten minutes.',
  used: 'This sign-in was used already.',
}

function requireOidc({ oidc }: OperatorParts): OidcClient {
  if (oidc !== null) return oidc
  throw new Problem('not_found', 'There is no identity provider here: OIDC_ISSUER is not set.')
}

/** @throws Problem forbidden, or unavailable with the reason and the other ways in */
function refuse({ log, oidc, passwordsOff }: OperatorParts, error: unknown): never {
  if (error instanceof OidcRefusedError) {
    log.warn({ err: error.cause, reason: error.reason }, oidcRefusedLine)
    throw new Problem('forbidden', `${error.message} Begin again.`, { cause: error })
  }
  if (!(error instanceof OidcUnavailableError)) throw error
  const instead = passwordsOff
    ? 'An administrator makes a link on the machine instead: di operators reset EMAIL.'
    : 'Sign in with your password instead.'
  const detail = `The identity provider ${oidc?.issuer} ${error.message}. ${instead}`
  throw unavailable(detail, error)
}
