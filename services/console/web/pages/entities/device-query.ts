/** A device as pages show it beside an alert or a case: without its sessions. */
import { queryOptions } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'

export const deviceContextQuery = (tenant: string, deviceId: string) =>
  queryOptions({
    queryKey: ['device', tenant, deviceId, 'context'],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}', {
          params: {
            path: { tenant_id: tenant, device_id: deviceId },
            query: { sessions_limit: 1 },
          },
        }),
      ),
  })
