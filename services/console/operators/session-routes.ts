/** The session of the person who calls: sign in and out, step up, list and end sessions. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Problem } from '#shared/core/http/problem.ts'
import { isSessionValid } from '#shared/core/operators/session-times.ts'
import { endSession, findSession, listSessions } from '#shared/io/operators/session-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type ConsoleApp, type OperatorPrincipal, operatorOf } from '../http/admin-app.ts'
import type { OperatorParts } from './operator-deps.ts'
import {
  sessionParams,
  sessionsQuery,
  sessionsSchema,
  signedInSchema,
  signInBody,
  stepUpBody,
} from './operator-schemas.ts'
import { toSessionView, toSignedInView } from './operator-views.ts'
import { type Caller, type SignedIn, signIn, stepUp } from './sign-in.ts'

const emptySchema = z.null().describe('nothing')

export const callerOf = ({ ip, headers }: FastifyRequest): Caller => ({
  address: ip,
  userAgent: headers['user-agent'] ?? '',
})

/** Answers with a session and puts its token into the cookie. */
export function sendSignedIn(parts: OperatorParts, reply: FastifyReply, signedIn: SignedIn) {
  parts.origin.setCookie(reply, signedIn.token)
  return toSignedInView(parts, signedIn)
}

export function addSessionRoutes(app: ConsoleApp, parts: OperatorParts): void {
  addOwnSession(app, parts)
  addSessionList(app, parts)
}

function addOwnSession(app: ConsoleApp, parts: OperatorParts): void {
  const answers = { 200: signedInSchema }
  app.post(
    '/session',
    {
      schema: {
        operationId: 'signIn',
        tags: ['Sessions'],
        summary: 'Sign in',
        description:
          'Sets the session cookie. A 401 with the code `totp_required` wants `code` as well. ' +
          'Unsafe requests with the cookie need `Origin` to be that of PUBLIC_URL.',
        body: signInBody,
        problems: ['unauthorized', 'totp_required', 'insecure_origin', 'forbidden'],
        response: answers,
      },
    },
    async (request, reply) => {
      parts.origin.requireSecure()
      const signedIn = await signIn(parts, request.body, callerOf(request)).catch(
        (error: unknown) => {
          if (error instanceof Problem) parts.onSignIn(error.code)
          throw error
        },
      )
      parts.onSignIn('signed_in')
      return sendSignedIn(parts, reply, signedIn)
    },
  )
  app.get(
    '/session',
    {
      schema: {
        operationId: 'findSession',
        tags: ['Sessions'],
        summary: 'Who is signed in',
        response: answers,
      },
    },
    async ({ principal }) => toSignedInView(parts, operatorOf(principal)),
  )
  app.delete(
    '/session',
    {
      schema: {
        operationId: 'signOut',
        tags: ['Sessions'],
        summary: 'Sign out',
        response: { 204: emptySchema },
      },
    },
    async ({ principal }, reply) => {
      await end(parts, operatorOf(principal), operatorOf(principal).session)
      parts.origin.clearCookie(reply)
      return reply.code(204).send(null)
    },
  )
  app.post(
    '/session/step-up',
    {
      schema: {
        operationId: 'stepUp',
        tags: ['Sessions'],
        summary: 'Enter the password or a code again, for what needs it in the next ten minutes',
        body: stepUpBody,
        problems: ['step_up_refused'],
        response: answers,
      },
    },
    async (request, reply) => {
      const { body, principal, ip: address } = request
      const stepped = await stepUp(parts, operatorOf(principal), { ...body, address })
      return sendSignedIn(parts, reply, stepped)
    },
  )
}

function addSessionList(app: ConsoleApp, parts: OperatorParts): void {
  const { postgres, wallMs } = parts
  app.get(
    '/sessions',
    {
      schema: {
        operationId: 'listSessions',
        tags: ['Sessions'],
        summary: 'The sessions of the operator who calls, newest first',
        querystring: sessionsQuery,
        problems: ['forbidden'],
        response: { 200: sessionsSchema },
      },
    },
    async ({ principal, query: { operator_id: wanted } }) => {
      const caller = operatorOf(principal)
      const { operatorId } = caller.operator
      if (wanted !== undefined && wanted !== operatorId && !managesOperators(caller)) {
        throw new Problem(
          'forbidden',
          'Only an administrator of all tenants sees the sessions of others.',
        )
      }
      const sessions = await listSessions(postgres, wanted ?? operatorId)
      return {
        data: sessions
          .filter((session) => isSessionValid(session, wallMs()))
          .map((session) => ({
            ...toSessionView(session),
            operator_id: session.operatorId,
            last_used_at: new Date(session.lastUsedAtMs).toISOString(),
            address: session.address,
            user_agent: session.userAgent,
            current: session.sessionId === caller.session.sessionId,
          })),
      }
    },
  )
  app.delete(
    '/sessions/:session_id',
    {
      schema: {
        operationId: 'endSession',
        tags: ['Sessions'],
        summary: 'End a session: its owner and administrators can',
        params: sessionParams,
        problems: ['session_not_found'],
        response: { 204: emptySchema },
      },
    },
    async ({ principal, params: { session_id: sessionId } }, reply) => {
      const caller = operatorOf(principal)
      const session = await findSession(postgres, sessionId)
      const isOwn = session?.operatorId === caller.operator.operatorId
      if (session === null || !(isOwn || managesOperators(caller))) {
        throw new Problem('session_not_found', 'There is no such session.')
      }
      await end(parts, caller, session)
      if (sessionId === caller.session.sessionId) parts.origin.clearCookie(reply)
      return reply.code(204).send(null)
    },
  )
}

const managesOperators = ({ operator: { role, tenants } }: OperatorPrincipal): boolean =>
  role === 'admin' && tenants === 'all'

async function end(
  { postgres }: OperatorParts,
  { operator }: OperatorPrincipal,
  { sessionId, operatorId }: { sessionId: string; operatorId: string },
): Promise<void> {
  await postgres.transaction(async (tx) => {
    if (!(await endSession(tx, sessionId))) return
    await insertAudit(tx, {
      actor: operator.email,
      tenantId: null,
      action: 'session.ended',
      before: { session_id: sessionId, operator_id: operatorId },
    })
  })
}
