/** The audit log: of a tenant, of what concerns no single tenant, or all of it. */
import { z } from 'zod'
import { auditedActions } from '#shared/core/audit/audited-actions.ts'
import { instantParameter, someOf } from '#shared/core/http/api-schemas.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { emailCharactersMax } from '#shared/core/operators/operator-credentials.ts'
import { type AuditFilters, listAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { pageQuery, pageSchema, readCursor, toPage } from '../http/paging.ts'
import { tenantParams } from '../http/schemas.ts'

const listAuditQuery = z.strictObject({
  ...pageQuery(500, 100),
  actor: operatorText(emailCharactersMax)
    .optional()
    .describe("who: an operator's email, `admin` for the admin token, `system`, or `unknown`"),
  action: someOf(auditedActions, 'Entries with any of these actions.'),
  from: instantParameter('Entries written at this instant or later.'),
  to: instantParameter('Entries written before this instant.'),
})

const consoleAuditQuery = listAuditQuery.extend({
  tenants: z
    .enum(['none', 'all'])
    .default('none')
    .describe('`all`: also the entries of every tenant, in one list'),
})

const auditSchema = pageSchema(
  z.object({
    audit_id: z.number().int(),
    at: z.string(),
    actor: z.string(),
    tenant_id: z.string().nullable(),
    action: z.string(),
    before: z.unknown(),
    after: z.unknown(),
    written_by: z
      .string()
      .nullable()
      .describe('the database user of the process that wrote it; null in older entries'),
  }),
)

/** Adds the routes. */
export function addAuditRoutes(app: ConsoleApp, { postgres }: { postgres: Queryable }): void {
  const answer = async (
    tenantId: AuditFilters['tenantId'],
    { limit, cursor, actor, action, from, to }: z.output<typeof listAuditQuery>,
  ) => {
    const filters = { tenantId, actor, actions: action, fromMs: from, toMs: to }
    const list = tenantId === undefined ? 'audit of all' : 'audit'
    const scope = { list, tenantId: tenantId ?? '', filters: Object.values(filters) }
    const before = readCursor(scope, cursor, z.int())
    const rows = await listAudit(postgres, { ...filters, limit: limit + 1, before })
    return toPage(scope, { rows, limit }, (row) => row.audit_id)
  }
  app.get(
    '/tenants/:tenant_id/audit',
    {
      schema: {
        operationId: 'listTenantAudit',
        tags: ['Audit'],
        summary: 'The audit log of a tenant, newest first, also of a removed tenant',
        description: 'The filters narrow it together.',
        params: tenantParams,
        querystring: listAuditQuery,
        response: { 200: auditSchema },
      },
    },
    async ({ params, query }) => answer(params.tenant_id, query),
  )
  app.get(
    '/audit',
    {
      schema: {
        operationId: 'listAudit',
        tags: ['Audit'],
        summary: 'The audit log of what concerns no single tenant: operators, sign-ins, secrets',
        description: 'With `tenants=all` it is the whole log. The filters narrow it together.',
        querystring: consoleAuditQuery,
        response: { 200: auditSchema },
      },
    },
    async ({ query: { tenants, ...query } }) => answer(tenants === 'all' ? undefined : null, query),
  )
}
