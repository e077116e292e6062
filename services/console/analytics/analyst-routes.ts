/** Routes of a tenant's analysts. */
import { z } from 'zod'
import { analystNamePattern, reservedAnalyst } from '#shared/core/analytics/analyst-access.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import {
  type AnalystDeps,
  createAnalyst,
  listTenantAnalysts,
  removeTenantAnalyst,
  requireServer,
  resetAnalystPassword,
} from './manage-analysts.ts'

const nameSchema = z
  .string()
  .regex(analystNamePattern, 'must be 1 to 32 lower-case letters, digits and hyphens')
  .refine((name) => name !== reservedAnalyst, 'is the name of the analyst of the console itself')

const createdSchema = z
  .object({
    tenant_id: z.string(),
    name: z.string(),
    url: z.string(),
    user: z.string(),
    password: z.string(),
    database: z.string(),
    warning: z
      .string()
      .optional()
      .describe('of the embedded engine only: what this user does not hold'),
  })
  .describe('The only time that the password is shown.')

const listSchema = z.object({
  tenant_id: z.string(),
  data: z.array(
    z.object({
      name: z.string(),
      user: z.string(),
      created_at: z.string(),
      created_by: z.string(),
    }),
  ),
})

/** Adds the routes. */
export function addAnalystRoutes(app: ConsoleApp, deps: AnalystDeps): void {
  app.post(
    '/tenants/:tenant_id/analysts',
    {
      schema: {
        operationId: 'createAnalyst',
        idempotency: 'refused',
        tags: ['SQL'],
        summary: 'Create an analyst, who may query the analytics views of this tenant',
        description:
          'A user of ClickHouse that reads only this tenant and changes nothing. On the embedded ' +
          'engine of the local stack it has the views of one tenant and is no wall, so only ' +
          'operators who may see all tenants create one there.',
        params: tenantParams,
        body: z.strictObject({ name: nameSchema.default('analyst') }),
        problems: ['analyst_exists', 'analysts_not_possible', 'analysts_need_a_server'],
        response: { 201: createdSchema },
      },
    },
    async ({ params, body, principal }, reply) => {
      requireServer(deps, tenantsOf(principal))
      const change = { tenantId: params.tenant_id, name: body.name, actor: actorOf(principal) }
      return reply.code(201).send(await createAnalyst(deps, change))
    },
  )
  app.post(
    '/tenants/:tenant_id/analysts/:name/password',
    {
      schema: {
        operationId: 'resetAnalystPassword',
        idempotency: 'refused',
        tags: ['SQL'],
        summary: 'Give an analyst a new password',
        description: 'After it returns no query starts with the old one.',
        params: tenantParams.extend({ name: nameSchema }),
        problems: ['analyst_not_found', 'analysts_not_possible', 'analysts_need_a_server'],
        response: { 200: createdSchema },
      },
    },
    async ({ params, principal }) => {
      requireServer(deps, tenantsOf(principal))
      const change = { tenantId: params.tenant_id, name: params.name, actor: actorOf(principal) }
      return resetAnalystPassword(deps, change)
    },
  )
  app.get(
    '/tenants/:tenant_id/analysts',
    {
      schema: {
        operationId: 'listAnalysts',
        tags: ['SQL'],
        summary: 'List the analysts of a tenant, without secrets',
        params: tenantParams,
        response: { 200: listSchema },
      },
    },
    async ({ params }) => listTenantAnalysts(deps, params.tenant_id),
  )
  app.delete(
    '/tenants/:tenant_id/analysts/:name',
    {
      schema: {
        operationId: 'removeAnalyst',
        tags: ['SQL'],
        summary: 'Remove an analyst',
        description: 'After it returns no query starts with the password.',
        params: tenantParams.extend({ name: nameSchema }),
        problems: ['analyst_not_found'],
        response: {
          200: z.object({ tenant_id: z.string(), name: z.string() }),
        },
      },
    },
    async ({ params, principal }) =>
      removeTenantAnalyst(deps, {
        tenantId: params.tenant_id,
        name: params.name,
        actor: actorOf(principal),
      }),
  )
}
