/** The route of stale-secret requests: requests signed with the HMAC secret before the last rotation. */

import { z } from 'zod'
import { unavailable } from '#shared/core/http/problem.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { StaleSecretRequestsByVersion } from '#shared/io/tenants/stale-secret-requests.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from './manage-tenants.ts'

export type StaleSecretDeps = {
  postgres: Queryable
  /** @throws when NATS is away */
  listStaleSecretRequests: (secret: {
    tenantId: string
    last4: string
  }) => Promise<StaleSecretRequestsByVersion[]>
}

const staleSecretRequestsSchema = z.object({
  tenant_id: z.string(),
  retired_secret: z
    .object({ last4: z.string(), retired_at: z.string() })
    .nullable()
    .describe('the HMAC secret that the last rotation replaced; null before the first'),
  requests: z.number().int().describe('rejected requests that were signed with it'),
  data: z.array(
    z.object({ sdk_version: z.string(), requests: z.number().int(), last_seen_at: z.string() }),
  ),
})
export type StaleSecretReport = z.infer<typeof staleSecretRequestsSchema>

/** Adds the route. */
export function addStaleSecretRoutes(app: ConsoleApp, deps: StaleSecretDeps): void {
  const store = createTenantStore(deps.postgres)
  app.get(
    '/tenants/:tenant_id/stale-secret-requests',
    {
      schema: {
        operationId: 'countStaleSecretRequests',
        tags: ['Submissions'],
        summary: 'Count requests still signed with the retired HMAC secret, by SDK version',
        description: 'Since the last rotation. Edges report every two seconds.',
        params: tenantParams,
        response: { 200: staleSecretRequestsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      await requireTenant(deps.postgres, tenantId)
      const retired = await store.findRetiredHmac(tenantId)
      if (retired === null) {
        return { tenant_id: tenantId, retired_secret: null, requests: 0, data: [] }
      }
      const { last4, retiredAt } = retired
      const data = await deps
        .listStaleSecretRequests({ tenantId, last4 })
        .catch((error: unknown) => {
          throw unavailable('The reports of the edges cannot be read: NATS does not answer.', error)
        })
      return {
        tenant_id: tenantId,
        retired_secret: { last4, retired_at: retiredAt },
        requests: data.reduce((sum, { requests }) => sum + requests, 0),
        data,
      }
    },
  )
}
