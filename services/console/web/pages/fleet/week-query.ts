/** The fleet of the last seven days, as pages read it that show it beside something else. */
import { queryOptions } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { serverNowMs } from '../../components/time/server-clock.ts'

const weekMs = 7 * 86_400_000

export const fleetOfWeekQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['fleet', tenant, 'week'],
    queryFn: () => {
      const from = new Date(serverNowMs() - weekMs).toISOString()
      const params = { path: { tenant_id: tenant }, query: { from } }
      return ok(api.GET('/admin/v1/tenants/{tenant_id}/fleet', { params }))
    },
    staleTime: 60_000,
  })
