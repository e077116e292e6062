/** Erasures of a tenant: requesting one, and watching it and the list while something is to do. */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type Erasure = AnswerOf<'/admin/v1/tenants/{tenant_id}/erasures/{erasure_id}', 'get'>
export type Receipt = NonNullable<Erasure['receipt']>
export type Subject = { kind: 'device' | 'user'; id: string }

const watchMs = 1_000
const listMost = 100

export const isOpen = ({ ended_at }: Erasure): boolean => ended_at === null

/** Requests an erasure, which goes on in the server. */
export async function requestErasure(tenantId: string, { kind, id }: Subject): Promise<Erasure> {
  const subject = kind === 'user' ? { user_id: id } : { device_id: id }
  const answer = await ok(
    api.POST('/admin/v1/tenants/{tenant_id}/erasures', {
      params: { path: { tenant_id: tenantId } },
      body: { ...subject, wait: false },
    }),
  )
  return answer as Erasure
}

export const erasuresQuery = (tenantId: string) =>
  queryOptions({
    queryKey: ['erasures', tenantId],
    queryFn: async () => {
      const path = { tenant_id: tenantId }
      const query = { limit: listMost }
      const url = '/admin/v1/tenants/{tenant_id}/erasures'
      return (await ok(api.GET(url, { params: { path, query } }))).data
    },
    enabled: tenantId !== '',
    refetchInterval: ({ state: { data } }) => (data?.some(isOpen) ? watchMs : false),
  })

export const erasureQuery = (tenantId: string, erasureId: string) =>
  queryOptions({
    queryKey: ['erasures', tenantId, erasureId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/erasures/{erasure_id}', {
          params: { path: { tenant_id: tenantId, erasure_id: erasureId } },
        }),
      ),
    refetchInterval: ({ state: { data } }) => (data && isOpen(data) ? watchMs : false),
  })
