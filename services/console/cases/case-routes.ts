/** The queue of cases: pages, counts, one case, and the next one for an operator. */
import {
  type CaseFilter,
  caseCountsSchema,
  caseDetailSchema,
  caseFilterSchema,
  casePageSchema,
  casePath,
  casesQuery,
  nextCaseBody,
  nextCaseSchema,
} from '#shared/core/cases/case-schemas.ts'
import { countCases, listCases, showCase } from '#shared/io/cases/list-cases.ts'
import { takeNextCase } from '#shared/io/cases/next-case.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/** Adds the routes. */
export function addCaseRoutes(app: ConsoleApp, { postgres }: { postgres: Postgres }): void {
  app.get(
    '/tenants/:tenant_id/cases',
    {
      schema: {
        operationId: 'listCases',
        tags: ['Cases'],
        summary: 'List and filter the cases of a tenant in the order of a queue',
        params: tenantParams,
        querystring: casesQuery,
        response: { 200: casePageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query, principal }) => {
      await requireTenant(postgres, tenantId)
      return listCases(postgres, { tenantId, query, caller: actorOf(principal) })
    },
  )
  app.get(
    '/tenants/:tenant_id/cases/counts',
    {
      schema: {
        operationId: 'countCases',
        tags: ['Cases'],
        summary: 'How many cases match filters, by state, and how many are overdue',
        params: tenantParams,
        querystring: caseFilterSchema,
        response: { 200: caseCountsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query, principal }) => {
      await requireTenant(postgres, tenantId)
      const filter: CaseFilter = query
      return countCases(postgres, { tenantId, filter, caller: actorOf(principal) })
    },
  )
  app.post(
    '/tenants/:tenant_id/cases/next',
    {
      schema: {
        operationId: 'takeNextCase',
        idempotency: 'kept',
        tags: ['Cases'],
        summary: 'Lease the next free case of a queue',
        description:
          'The first case of the filter in the order of `sort` that is open, not snoozed, not ' +
          'leased to anyone and not open on the page of another operator; without `assignee` in ' +
          'the filter, one that is unassigned or yours. It is yours for ten minutes, and as long ' +
          'as your page tells that it is open; a judgement, a snooze or leaving it ends that. ' +
          'Two operators never get the same case.',
        params: tenantParams,
        body: nextCaseBody,
        response: { 200: nextCaseSchema },
      },
    },
    async (request, reply) => {
      const { params, body, principal } = request
      const { tenant_id: tenantId } = params
      await requireTenant(postgres, tenantId)
      const wanted = { tenantId, ...body, operator: actorOf(principal) }
      return changeOnce(postgres, { request, reply }, async (db) => ({
        case: await takeNextCase(db, wanted),
      }))
    },
  )
  app.get(
    '/cases/:case_id',
    {
      schema: {
        operationId: 'findCase',
        conditional: true,
        tags: ['Cases'],
        summary: 'One case with its devices, users, notes and history',
        description: 'Its alerts are `GET /tenants/{tenant_id}/alerts` with its `case_id`.',
        params: casePath,
        problems: ['case_not_found'],
        response: { 200: caseDetailSchema },
      },
    },
    async ({ params, principal }) =>
      showCase(postgres, { caseId: params.case_id, scope: tenantsOf(principal) }),
  )
}
