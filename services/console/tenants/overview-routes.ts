/** Routes of the audit log, and of the edges with their applied revisions. */
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { EdgeList } from '#shared/io/tenants/directory/list-edges.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { auditSchema, edgesSchema, listAuditQuery, tenantParams } from '../http/schemas.ts'

export type OverviewRouteDeps = {
  postgres: Queryable
  listEdges: () => Promise<EdgeList>
}

/** Adds the routes. */
export function addOverviewRoutes(app: ConsoleApp, deps: OverviewRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/audit',
    {
      schema: {
        summary: 'The audit log of a tenant, newest first, also of a removed tenant',
        params: tenantParams,
        querystring: listAuditQuery,
        response: { 200: auditSchema },
      },
    },
    async ({ params, query: { limit, before } }) => {
      const data = await listAudit(deps.postgres, { tenantId: params.tenant_id, limit, before })
      return { data, next: data.length === limit ? data.at(-1)!.audit_id : null }
    },
  )
  app.get(
    '/audit',
    {
      schema: {
        summary: 'The audit log of what concerns no single tenant: operators, sign-ins, secrets',
        querystring: listAuditQuery,
        response: { 200: auditSchema },
      },
    },
    async ({ query: { limit, before } }) => {
      const data = await listAudit(deps.postgres, { tenantId: null, limit, before })
      return { data, next: data.length === limit ? data.at(-1)!.audit_id : null }
    },
  )
  app.get(
    '/edges',
    {
      schema: {
        summary: 'The edges and the revision that each has applied',
        response: { 200: edgesSchema },
      },
    },
    async () => {
      const { revision, edges } = await deps.listEdges()
      return { revision, data: edges }
    },
  )
}
