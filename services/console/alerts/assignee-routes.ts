/** Who may be given an alert or a case: the operators of a tenant who may judge. */
import { z } from 'zod'
import { includesRole, seesTenant } from '#shared/core/operators/roles.ts'
import { listOperators } from '#shared/io/operators/operator-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

const assigneesSchema = z.object({
  data: z.array(z.object({ email: z.string(), name: z.string() })).describe('by email'),
})

/** Adds the route. */
export function addAssigneeRoute(app: ConsoleApp, { postgres }: { postgres: Postgres }): void {
  app.get(
    '/tenants/:tenant_id/assignees',
    {
      schema: {
        operationId: 'listAssignees',
        tags: ['Alerts'],
        summary: 'Operators of a tenant who may judge alerts and cases, without the disabled',
        params: tenantParams,
        response: { 200: assigneesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      await requireTenant(postgres, tenantId)
      const all = await listOperators(postgres)
      const data = all
        .filter(({ disabled, tenants }) => !disabled && seesTenant(tenants, tenantId))
        .filter(({ role }) => includesRole(role, 'analyst'))
        .map(({ email, name }) => ({ email, name }))
      return { data }
    },
  )
}
