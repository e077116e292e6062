/** Operators as administrators see and change them, and all routes of this folder. */
import { listOperators } from '#shared/io/operators/operator-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { addAccountRoutes } from './account-routes.ts'
import { changeOperator } from './change-operator.ts'
import { addInvitationRoutes } from './invitation-routes.ts'
import { startReset } from './invitations.ts'
import { addOidcRoutes } from './oidc/oidc-routes.ts'
import type { OperatorParts } from './operator-deps.ts'
import {
  invitedSchema,
  listedOperatorSchema,
  operatorBody,
  operatorParams,
  operatorsSchema,
} from './operator-schemas.ts'
import { toListedOperator } from './operator-views.ts'
import { addSecondFactorRoutes } from './second-factor/second-factor-routes.ts'
import { addSessionRoutes } from './session-routes.ts'

export function addOperatorRoutes(app: ConsoleApp, parts: OperatorParts): void {
  addSessionRoutes(app, parts)
  addAccountRoutes(app, parts)
  addInvitationRoutes(app, parts)
  addOidcRoutes(app, parts)
  addSecondFactorRoutes(app, parts)
  app.get(
    '/operators',
    {
      schema: {
        operationId: 'listOperators',
        tags: ['Operators'],
        summary: 'All operators by email',
        response: { 200: operatorsSchema },
      },
    },
    async () => ({ data: (await listOperators(parts.postgres)).map(toListedOperator) }),
  )
  app.patch(
    '/operators/:operator_id',
    {
      schema: {
        operationId: 'changeOperator',
        tags: ['Operators'],
        summary: 'Change the role, the tenants or the name of an operator, or disable one',
        description: 'Disabling ends all sessions. One active administrator of all tenants stays.',
        params: operatorParams,
        body: operatorBody,
        problems: ['operator_not_found', 'tenant_not_found', 'last_admin'],
        response: { 200: listedOperatorSchema },
      },
    },
    async ({ params: { operator_id: operatorId }, body, principal }) =>
      changeOperator(parts, { ...body, operatorId, actor: actorOf(principal) }),
  )
  app.post(
    '/operators/:operator_id/reset',
    {
      schema: {
        operationId: 'resetOperator',
        idempotency: 'refused',
        tags: ['Operators'],
        summary: 'Make a link by which an operator chooses a new password',
        description:
          'Its use ends all sessions of the operator, switches TOTP off and forgets who they were at ' +
          'the identity provider.',
        params: operatorParams,
        problems: ['operator_not_found', 'conflict'],
        response: { 201: invitedSchema },
      },
    },
    async ({ params: { operator_id: operatorId }, principal }, reply) =>
      reply.code(201).send(await startReset(parts, { operatorId, actor: actorOf(principal) })),
  )
}
