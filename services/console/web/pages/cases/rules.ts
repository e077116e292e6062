/** The rules by which alerts of a tenant fall into cases. */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type CaseRules = AnswerOf<'/admin/v1/tenants/{tenant_id}/case-rules', 'get'>

export const caseRulesQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['case-rules', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/case-rules', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
  })

export const setCaseRules = (tenant: string, body: CaseRules) =>
  ok(
    api.PUT('/admin/v1/tenants/{tenant_id}/case-rules', {
      params: { path: { tenant_id: tenant } },
      body,
    }),
  )
