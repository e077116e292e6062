/** The catalog of signals with what they weigh for a tenant, as several pages read it. */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type SignalCatalog = AnswerOf<'/admin/v1/tenants/{tenant_id}/signals', 'get'>

export const catalogQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['signals', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/signals', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
  })
