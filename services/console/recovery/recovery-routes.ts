/** The routes of recovery: what Postgres has forgotten, and its confirmation by an operator. */
import { z } from 'zod'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { type ApplyParts, applyRecovery } from './apply-recovery.ts'
import { readRecovery } from './read-recovery.ts'

/** `nats` is asked for at each call. */
export type RecoveryRouteDeps = Omit<ApplyParts, 'nats'> & {
  requireNats: () => ApplyParts['nats']
}

const stateSchema = z.object({
  epoch: z.number().int().describe('rises with every change of a credential or of the status'),
  status: z.enum(['active', 'suspended']),
  environment: z.enum(['live', 'sandbox']),
  policy_version: z.number().int(),
  hmac_last4: z.string().nullable().describe('of the HMAC secret'),
})

const recoverySchema = z.object({
  digest: z.string().describe('of all that is listed: the confirmation names it'),
  tenants: z
    .array(
      z.object({
        tenant_id: z.string(),
        directory: stateSchema.describe('as the edges have it, which Postgres takes over'),
        postgres: stateSchema.nullable().describe('null when Postgres does not have the tenant'),
      }),
    )
    .describe('of which the directory has a newer state'),
  api_keys: z
    .array(z.object({ tenant_id: z.string(), sha256: z.string(), last4: z.string() }))
    .describe('active again although they were retired: they are retired again'),
  webhooks: z
    .array(z.object({ tenant_id: z.string(), secret_id: z.number().int() }))
    .describe('on, with a secret that was replaced: they are paused'),
  erasures: z
    .array(
      z.object({
        tenant_id: z.string(),
        subject: z.enum(['device', 'user']),
        sha256: z.string(),
        started_at: z.string(),
      }),
    )
    .describe('forgotten: their subjects are searched and erased again'),
})

const recoveredSchema = z.object({
  tenants: z.number().int(),
  api_keys: z.number().int(),
  webhooks: z.number().int(),
  erasures: z.number().int(),
})

/** Adds the routes. */
export function addRecoveryRoutes(app: ConsoleApp, deps: RecoveryRouteDeps): void {
  const { requireNats, ...parts } = deps
  app.get(
    '/recovery',
    {
      schema: {
        operationId: 'showRecovery',
        tags: ['Credentials'],
        summary: 'What a Postgres that was put back has forgotten',
        description:
          'Nothing of it is taken over, and changes of these tenants are refused, before an ' +
          'administrator has confirmed it. Empty lists: there is nothing to recover.',
        response: { 200: recoverySchema },
      },
    },
    async () => {
      const { entries: _, ...shown } = await readRecovery({ ...parts, nats: requireNats() })
      return {
        ...shown,
        erasures: shown.erasures.map(({ kind: _kind, ...erasure }) => erasure),
      }
    },
  )
  app.post(
    '/recovery',
    {
      schema: {
        operationId: 'applyRecovery',
        tags: ['Credentials'],
        summary: 'Take over what Postgres has forgotten, exactly as it was shown',
        description:
          'Ends the sessions of all operators when a tenant is recovered: those that had ended are ' +
          'there again.',
        body: z
          .strictObject({ digest: z.string().max(64).describe('of `GET /recovery`') })
          .meta({ examples: [{ digest: '5feceb66ffc86f38' }] }),
        problems: ['recovery_changed'],
        response: { 200: recoveredSchema },
      },
    },
    async ({ body: { digest }, principal }) =>
      applyRecovery({ ...parts, nats: requireNats() }, { digest, actor: actorOf(principal) }),
  )
}
