/** Routes of the latest rotation of a tenant: progress, and its new credentials. */
import { z } from 'zod'
import { Problem } from '#shared/core/http/problem.ts'
import { rotationProgressSchema } from '#shared/core/tenants/rotation-progress.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import {
  findRotation,
  removeRotationKeys,
  type StoredRotation,
} from '#shared/io/tenants/rotation-store.ts'
import { actorOf, type ConsoleApp, type Principal } from '../http/admin-app.ts'
import { rotationKeysSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from './manage-tenants.ts'

type RotationRouteDeps = { postgres: Postgres; sealer: Sealer }

const rotationSchema = z.object({
  rotation_id: z.string(),
  started_by: z.string(),
  started_at: z.string(),
  state: z
    .enum(['running', 'done', 'failed', 'lost'])
    .describe(
      'lost: its console has ended. It is undone, unless the new credentials were in force already; ' +
        'rotate again, since they are kept nowhere.',
    ),
  ...rotationProgressSchema.shape,
  new_keys: z
    .object({ until: z.string(), yours: z.boolean().describe('whether the caller may fetch them') })
    .nullable()
    .describe('set while the new credentials can be fetched'),
})

const latestSchema = z.object({ tenant_id: z.string(), rotation: rotationSchema.nullable() })

/** Adds the routes. */
export function addRotationRoutes(app: ConsoleApp, deps: RotationRouteDeps): void {
  const { postgres } = deps
  app.get(
    '/tenants/:tenant_id/rotation',
    {
      schema: {
        operationId: 'findRotation',
        tags: ['Credentials'],
        summary: 'Show the latest rotation, and what each edge has confirmed',
        description: 'Null before the first one.',
        params: tenantParams,
        response: { 200: latestSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, principal }) => {
      await requireTenant(postgres, tenantId)
      const found = await findRotation(postgres, tenantId)
      return { tenant_id: tenantId, rotation: found && toView(found, principal) }
    },
  )
  app.post(
    '/tenants/:tenant_id/rotation/keys',
    {
      schema: {
        operationId: 'fetchRotatedCredentials',
        tags: ['Credentials'],
        summary: 'Fetch the new credentials of the latest rotation',
        description: 'For 15 minutes, only for the person who rotated, until they are removed.',
        params: tenantParams,
        body: z.strictObject({}).nullish(),
        problems: ['conflict'],
        response: { 200: rotationKeysSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, principal }) => {
      const { rotationId, keys } = await requireOwn(postgres, tenantId, principal)
      const text = unsealKeys(deps.sealer, tenantId, keys.sealed)
      await insertAudit(postgres, {
        actor: actorOf(principal),
        tenantId,
        action: 'tenant.new_keys_fetched',
        after: { rotation_id: rotationId },
      })
      return JSON.parse(text) as z.infer<typeof rotationKeysSchema>
    },
  )
  app.delete(
    '/tenants/:tenant_id/rotation/keys',
    {
      schema: {
        operationId: 'removeRotatedCredentials',
        tags: ['Credentials'],
        summary: 'Remove the new credentials of the latest rotation: they are kept elsewhere',
        params: tenantParams,
        problems: ['conflict'],
        response: { 200: z.object({ tenant_id: z.string() }) },
      },
    },
    async ({ params: { tenant_id: tenantId }, principal }) => {
      const { rotationId } = await requireOwn(postgres, tenantId, principal)
      await removeRotationKeys(postgres, { tenantId, rotationId })
      return { tenant_id: tenantId }
    },
  )
}

/** @throws Problem conflict when MASTER_KEY was replaced meanwhile */
function unsealKeys(sealer: Sealer, tenantId: string, sealed: string): string {
  try {
    return sealer.unseal(sealed, { tenantId, kind: 'rotated' })
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error
    throw noKeys(error)
  }
}

const noKeys = (cause?: unknown) =>
  new Problem('conflict', 'There are no new credentials to fetch. Rotate again.', { cause })

/** @throws Problem forbidden for another's rotation, conflict when there is nothing to fetch */
async function requireOwn(
  postgres: Postgres,
  tenantId: string,
  principal: Principal | null,
): Promise<StoredRotation & { keys: NonNullable<StoredRotation['keys']> }> {
  await requireTenant(postgres, tenantId)
  const found = await findRotation(postgres, tenantId)
  if (found === null || found.keys === null) throw noKeys()
  if (found.startedBy !== actorOf(principal)) {
    throw new Problem('forbidden', 'Only the person who rotated can fetch the new credentials.')
  }
  return { ...found, keys: found.keys }
}

function toView(rotation: StoredRotation, principal: Principal | null) {
  const { keys } = rotation
  return {
    rotation_id: rotation.rotationId,
    started_by: rotation.startedBy,
    started_at: rotation.startedAt,
    state: rotation.state,
    ...rotation.progress,
    new_keys: keys && { until: keys.until, yours: rotation.startedBy === actorOf(principal) },
  }
}
