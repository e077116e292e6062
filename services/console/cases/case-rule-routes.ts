/** How alerts of a tenant are grouped into cases, and when cases are overdue. */
import { caseRulesBody, caseRulesSchema } from '#shared/core/cases/case-schemas.ts'
import { setCaseRules, showCaseRules } from '#shared/io/cases/case-rules-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/** Adds the routes. */
export function addCaseRuleRoutes(app: ConsoleApp, { postgres }: { postgres: Postgres }): void {
  app.get(
    '/tenants/:tenant_id/case-rules',
    {
      schema: {
        operationId: 'showCaseRules',
        tags: ['Cases'],
        summary: 'How alerts are grouped into cases, and when these are overdue',
        params: tenantParams,
        response: { 200: caseRulesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      await requireTenant(postgres, tenantId)
      return showCaseRules(postgres, tenantId)
    },
  )
  app.put(
    '/tenants/:tenant_id/case-rules',
    {
      schema: {
        operationId: 'setCaseRules',
        tags: ['Cases'],
        summary: 'Set how alerts are grouped into cases, and when these are overdue',
        description:
          'Due times of open cases follow at once. Alerts that are raised from now on are grouped ' +
          'by the new rule; what is in a case stays there.',
        params: tenantParams,
        body: caseRulesBody,
        response: { 200: caseRulesSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }) => {
      await requireTenant(postgres, tenantId)
      return setCaseRules(postgres, { tenantId, actor: actorOf(principal), rules: body })
    },
  )
}
