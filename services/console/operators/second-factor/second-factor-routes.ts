/** Routes of the rules by which operators need a second factor. */
import { z } from 'zod'
import type { ConsoleApp } from '../../http/admin-app.ts'
import { tenantParams } from '../../http/schemas.ts'
import type { OperatorParts } from '../operator-deps.ts'
import { requireSecondFactor, showSecondFactorRule } from './require-second-factor.ts'

const ruleBody = z.strictObject({ required: z.boolean() })
const ruleSchema = z.object({
  tenant_id: z.string().nullable().describe('null: the rule of all operators'),
  required: z.boolean(),
  since: z.string().nullable().describe('sessions that began before go on until their end'),
  required_of_all: z.boolean().describe('whether it is required of all operators of the console'),
})
const covered =
  'Whoever is covered and signs in with a password or a link, without TOTP, can only set it up; ' +
  'other calls are answered `totp_setup_required`. Single sign-on is exempt: its provider asks for a ' +
  'second factor.'
const ofTenant = `It covers everyone who may see the tenant, operators of all tenants included. ${covered}`

/** Adds the routes. */
export function addSecondFactorRoutes(app: ConsoleApp, parts: OperatorParts): void {
  const { postgres } = parts
  const tags = ['Operators']
  const response = { 200: ruleSchema }
  app.get(
    '/second-factor',
    {
      schema: {
        operationId: 'findSecondFactorRule',
        tags,
        summary: 'Whether all operators need a second factor',
        response,
      },
    },
    async () => showSecondFactorRule(postgres, null),
  )
  app.put(
    '/second-factor',
    {
      schema: {
        operationId: 'requireSecondFactor',
        tags,
        summary: 'Ask all operators for a second factor, or not any more',
        description: covered,
        body: ruleBody,
        problems: ['conflict'],
        response,
      },
    },
    async ({ body: { required }, principal }) =>
      requireSecondFactor(parts, { tenantId: null, required, principal }),
  )
  app.get(
    '/tenants/:tenant_id/second-factor',
    {
      schema: {
        operationId: 'findTenantSecondFactorRule',
        tags,
        summary: 'Whether the operators of a tenant need a second factor',
        params: tenantParams,
        response,
      },
    },
    async ({ params: { tenant_id: tenantId } }) => showSecondFactorRule(postgres, tenantId),
  )
  app.put(
    '/tenants/:tenant_id/second-factor',
    {
      schema: {
        operationId: 'requireTenantSecondFactor',
        tags,
        summary: 'Ask the operators of a tenant for a second factor, or not any more',
        description: ofTenant,
        params: tenantParams,
        body: ruleBody,
        problems: ['conflict'],
        response,
      },
    },
    async ({ params: { tenant_id: tenantId }, body: { required }, principal }) =>
      requireSecondFactor(parts, { tenantId, required, principal }),
  )
}
