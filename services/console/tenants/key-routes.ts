/** Named API keys of a tenant. */
import { z } from 'zod'
import { apiKeyNamePattern, apiKeyScopes } from '#shared/core/tenants/api-key-scopes.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { createKey, type KeyDeps, listKeys, removeKey } from './manage-keys.ts'

const nameSchema = z
  .string()
  .regex(apiKeyNamePattern, 'must be 1 to 32 lower-case letters, digits and hyphens')

const keySchema = z.object({
  name: z.string(),
  scopes: z.array(z.enum(apiKeyScopes)),
  prefix: z.string(),
  last4: z.string(),
  created_at: z.string(),
  created_by: z.string(),
  last_used_at: z.string().nullable().describe('recorded at most once a minute'),
})

const createdSchema = keySchema
  .extend({ tenant_id: z.string(), api_key: z.string() })
  .describe('The only time that the key is shown.')

export const createKeyBody = z.strictObject({
  name: nameSchema.default('key'),
  scopes: z
    .array(z.enum(apiKeyScopes))
    .min(1)
    .max(apiKeyScopes.length)
    .refine((scopes) => new Set(scopes).size === scopes.length, 'must name each scope once')
    .describe(
      'Every key reads. `alerts:write` also sets dispositions, `lists:write` also changes the allow and deny lists, `labels:write` also adds labels.',
    ),
})

/** Adds the routes. */
export function addKeyRoutes(app: ConsoleApp, deps: KeyDeps): void {
  app.post(
    '/tenants/:tenant_id/keys',
    {
      schema: {
        operationId: 'createKey',
        idempotency: 'refused',
        tags: ['Credentials'],
        summary: 'Create a named API key with scopes',
        params: tenantParams,
        body: createKeyBody,
        problems: ['key_exists', 'conflict'],
        response: { 201: createdSchema },
      },
    },
    async ({ params, body, principal }, reply) =>
      reply.code(201).send(
        await createKey(deps, {
          tenantId: params.tenant_id,
          name: body.name,
          scopes: body.scopes,
          actor: actorOf(principal),
        }),
      ),
  )
  app.get(
    '/tenants/:tenant_id/keys',
    {
      schema: {
        operationId: 'listKeys',
        tags: ['Credentials'],
        summary: 'List the named API keys of a tenant, without secrets',
        params: tenantParams,
        response: { 200: z.object({ tenant_id: z.string(), data: z.array(keySchema) }) },
      },
    },
    async ({ params }) => listKeys(deps, params.tenant_id),
  )
  app.delete(
    '/tenants/:tenant_id/keys/:name',
    {
      schema: {
        operationId: 'removeKey',
        tags: ['Credentials'],
        summary: 'Remove a named API key',
        description:
          'Once this has returned, no new call with it succeeds and none changes anything.',
        params: tenantParams.extend({ name: nameSchema }),
        problems: ['key_not_found'],
        response: { 200: z.object({ tenant_id: z.string(), name: z.string() }) },
      },
    },
    async ({ params, principal }) =>
      removeKey(deps, {
        tenantId: params.tenant_id,
        name: params.name,
        actor: actorOf(principal),
      }),
  )
}
