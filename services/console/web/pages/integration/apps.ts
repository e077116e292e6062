/** The apps of a tenant as the pages read and change them. */
import { useQuery } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type App = AnswerOf<'/admin/v1/tenants/{tenant_id}/apps', 'get'>['data'][number]

export type NewApp =
  | {
      platform: 'android'
      id: string
      signers: string[]
      play_keys?: { decryption_key: string; verification_key: string } | null
    }
  | { platform: 'ios'; id: string; team: string; development: boolean }

/** The key of a tenant's apps, for a refresh after a change. */
export const appsKey = (tenantId: string) => ['apps', tenantId]

export const useApps = (tenantId: string) =>
  useQuery({
    queryKey: appsKey(tenantId),
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/apps', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
  })

export const putApp = (tenantId: string, body: NewApp) =>
  ok(
    api.PUT('/admin/v1/tenants/{tenant_id}/apps', {
      params: { path: { tenant_id: tenantId } },
      body,
    }),
  )

export const removeApp = (tenantId: string, { platform, id }: Pick<App, 'platform' | 'id'>) =>
  ok(
    api.DELETE('/admin/v1/tenants/{tenant_id}/apps/{platform}/{app_id}', {
      params: { path: { tenant_id: tenantId, platform, app_id: id } },
    }),
  )
