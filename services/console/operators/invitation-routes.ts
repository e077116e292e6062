/** Inviting operators, and accepting an invitation. */
import { listInvitations } from '#shared/io/operators/invitation-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { accept, invite, showInvitation, withdraw } from './invitations.ts'
import type { OperatorParts } from './operator-deps.ts'
import {
  acceptBody,
  invitationParams,
  invitationsSchema,
  inviteBody,
  invitedSchema,
  shownInvitationSchema,
  signedInSchema,
  withdrawBody,
  withdrawnSchema,
} from './operator-schemas.ts'
import { toInvitationView } from './operator-views.ts'
import { callerOf, sendSignedIn } from './session-routes.ts'

/** The latest invitations are enough to see what is open. */
const listedMax = 500

export function addInvitationRoutes(app: ConsoleApp, parts: OperatorParts): void {
  app.post(
    '/operators/invitations',
    {
      schema: {
        operationId: 'inviteOperator',
        idempotency: 'refused',
        tags: ['Operators'],
        summary: 'Invite an operator; the link works once',
        body: inviteBody,
        problems: ['operator_exists', 'tenant_not_found'],
        response: { 201: invitedSchema },
      },
    },
    async ({ body: { valid_hours: validHours, ...body }, principal }, reply) =>
      reply.code(201).send(await invite(parts, { ...body, validHours, actor: actorOf(principal) })),
  )
  app.get(
    '/operators/invitations',
    {
      schema: {
        operationId: 'listInvitations',
        tags: ['Operators'],
        summary: 'The latest invitations, newest first, without their links',
        response: { 200: invitationsSchema },
      },
    },
    async () => {
      const invitations = await listInvitations(parts.postgres, listedMax)
      return { data: invitations.map((one) => toInvitationView(one, parts.wallMs())) }
    },
  )
  app.post(
    '/operators/invitations/withdraw',
    {
      schema: {
        operationId: 'withdrawInvitation',
        tags: ['Operators'],
        summary: 'Withdraw an open invitation: its link does nothing any more',
        body: withdrawBody,
        problems: ['invitation_not_found'],
        response: { 200: withdrawnSchema },
      },
    },
    async ({ body: { invitation_id: invitationId }, principal }) =>
      withdraw(parts, { invitationId, actor: actorOf(principal) }),
  )
  addAcceptance(app, parts)
}

function addAcceptance(app: ConsoleApp, parts: OperatorParts): void {
  app.get(
    '/invitations/:token',
    {
      schema: {
        operationId: 'findInvitation',
        tags: ['Operators'],
        summary: 'What an invitation is for',
        params: invitationParams,
        problems: ['invitation_not_found'],
        response: { 200: shownInvitationSchema },
      },
    },
    async ({ params: { token }, ip }) => {
      parts.limits.beginToken(ip)
      const { email, role, operatorId, expiresAtMs } = await showInvitation(parts, token)
      const expires_at = new Date(expiresAtMs).toISOString()
      return { email, role, reset: operatorId !== null, expires_at }
    },
  )
  app.post(
    '/invitations/:token',
    {
      schema: {
        operationId: 'acceptInvitation',
        tags: ['Operators'],
        summary: 'Accept an invitation: makes the account and signs in',
        params: invitationParams,
        body: acceptBody,
        problems: ['invitation_not_found', 'operator_exists', 'insecure_origin', 'forbidden'],
        response: { 200: signedInSchema },
      },
    },
    async (request, reply) => {
      const { body, params, ip } = request
      parts.origin.requireSecure()
      parts.limits.beginToken(ip)
      const signedIn = await accept(parts, { ...params, ...body }, callerOf(request))
      return sendSignedIn(parts, reply, signedIn)
    },
  )
}
