/** A person's own account: the password and TOTP. */
import { z } from 'zod'
import { Problem } from '#shared/core/http/problem.ts'
import { setPasswordHash } from '#shared/io/operators/operator-store.ts'
import { endSessionsOf } from '#shared/io/operators/session-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import { type ConsoleApp, type OperatorPrincipal, operatorOf } from '../http/admin-app.ts'
import { hashNewPassword } from './choose-password.ts'
import type { OperatorParts } from './operator-deps.ts'
import {
  codeBody,
  passwordBody,
  recoveryCodesSchema,
  signedInSchema,
  totpSetupSchema,
} from './operator-schemas.ts'
import { confirmTotp, startTotp, switchTotpOff } from './second-factor/second-factor.ts'
import { sendSignedIn } from './session-routes.ts'
import { checkPassword, renewToken, requirePasswords, type SignedIn } from './sign-in.ts'

export function addAccountRoutes(app: ConsoleApp, parts: OperatorParts): void {
  app.put(
    '/session/password',
    {
      schema: {
        operationId: 'changePassword',
        tags: ['Sessions'],
        summary: 'Change the own password; ends all other sessions',
        body: passwordBody,
        problems: ['step_up_refused'],
        response: { 200: signedInSchema },
      },
    },
    async ({ body, principal, ip: address }, reply) => {
      const changed = await changePassword(parts, operatorOf(principal), { ...body, address })
      return sendSignedIn(parts, reply, changed)
    },
  )
  app.post(
    '/session/totp',
    {
      schema: {
        operationId: 'beginTotp',
        tags: ['Sessions'],
        summary: 'Make a secret for an authenticator app',
        problems: ['conflict'],
        response: { 200: totpSetupSchema },
      },
    },
    async ({ principal }) => startTotp(parts, operatorOf(principal)),
  )
  app.post(
    '/session/totp/confirm',
    {
      schema: {
        operationId: 'confirmTotp',
        tags: ['Sessions'],
        summary: 'Switch TOTP on with a first code; shows the recovery codes',
        body: codeBody,
        problems: ['conflict', 'step_up_refused'],
        response: { 200: recoveryCodesSchema },
      },
    },
    async ({ body: { code }, principal, ip: address }) =>
      confirmTotp(parts, operatorOf(principal), { code, address }),
  )
  app.delete(
    '/session/totp',
    {
      schema: {
        operationId: 'removeTotp',
        tags: ['Sessions'],
        summary: 'Switch TOTP off and remove the recovery codes',
        problems: ['conflict'],
        response: { 204: z.null().describe('nothing') },
      },
    },
    async ({ principal }, reply) => {
      await switchTotpOff(parts, operatorOf(principal))
      return reply.code(204).send(null)
    },
  )
}

/** @throws Problem forbidden while passwords are off; step_up_refused, invalid_body, rate_limited */
async function changePassword(
  parts: OperatorParts,
  principal: OperatorPrincipal,
  tried: { current: string; password: string; address: string },
): Promise<SignedIn> {
  const { postgres, limits } = parts
  const { operator, session, mustEnrol } = principal
  const { operatorId, email, name } = operator
  requirePasswords(parts)
  const attempt = limits.beginSignedIn({ operatorId, address: tried.address })
  if (!(await checkPassword(parts, operatorId, tried.current))) {
    parts.refused.note(tried.address, email)
    throw new Problem('step_up_refused', 'The present password is wrong.')
  }
  attempt.succeeded()
  const passwordHash = await hashNewPassword(parts, { password: tried.password, email, name })
  return postgres.transaction(async (tx) => {
    const token = await renewToken(parts, tx, principal)
    await setPasswordHash(tx, operatorId, passwordHash)
    const ended = await endSessionsOf(tx, operatorId, session.sessionId)
    await insertAudit(tx, {
      actor: email,
      tenantId: null,
      action: 'operator.password_changed',
      after: { sessions_ended: ended },
    })
    return { operator, session, token, mustEnrol }
  })
}
