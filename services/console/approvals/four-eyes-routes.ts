/** Routes of what a tenant wants of four eyes. */
import { effects } from '#shared/core/approvals/four-eyes.ts'
import { findFourEyes } from '#shared/io/approvals/four-eyes-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { setFourEyes, toFourEyesView } from './change-four-eyes.ts'
import { fourEyesBody, fourEyesSchema } from './proposal-schemas.ts'

/** Adds the routes. */
export function addFourEyesRoutes(app: ConsoleApp, { postgres }: { postgres: Postgres }): void {
  app.get(
    '/tenants/:tenant_id/four-eyes',
    {
      schema: {
        operationId: 'findFourEyes',
        tags: ['Proposals'],
        summary: 'Whether a tenant wants four eyes, and from how many alerts on',
        params: tenantParams,
        response: { 200: fourEyesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      await requireTenant(postgres, tenantId)
      return toFourEyesView(tenantId, await findFourEyes(postgres, tenantId))
    },
  )
  app.put(
    '/tenants/:tenant_id/four-eyes',
    {
      schema: {
        operationId: 'setFourEyes',
        tags: ['Proposals'],
        summary: 'Ask for four eyes, or not any more',
        description: `With four eyes, another administrator approves what has one of these effects: ${Object.values(effects).join('; ')}.`,
        params: tenantParams,
        body: fourEyesBody,
        response: { 200: fourEyesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }) => {
      const setting = { enabled: body.enabled, bulkAbove: body.bulk_above }
      return setFourEyes(postgres, { tenantId, setting, actor: actorOf(principal) })
    },
  )
}
