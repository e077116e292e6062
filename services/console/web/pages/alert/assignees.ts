/** Who may be given an alert or a case: the operators of a tenant who may judge. */
import { queryOptions } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'

export const assigneesQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['assignees', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/assignees', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
    staleTime: 60_000,
  })
