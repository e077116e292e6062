/**
 * The alerts of the filters in the URL, page by page. The list is read again only when the person
 * wants it: until then no row moves.
 */
import { useInfiniteQuery } from '@tanstack/react-query'
import { api, ok } from '../../../api/client.ts'
import { serverNowMs } from '../../../components/time/server-clock.ts'
import { toQuery } from '../filters/filter-values.ts'

const pageAlerts = 100

type Place = { cursor: string; nowMs: number }

export function useAlertList(tenant: string, filters: Record<string, string>) {
  return useInfiniteQuery({
    queryKey: ['alerts', tenant, filters],
    queryFn: async ({ pageParam: place }) => {
      // A cursor belongs to its filters: all pages of a span begin at the same moment.
      const nowMs = place?.nowMs ?? serverNowMs()
      const query = {
        ...toQuery(filters, nowMs),
        limit: pageAlerts,
        ...(place === null ? {} : { cursor: place.cursor }),
      }
      const page = await ok(
        api.GET('/admin/v1/tenants/{tenant_id}/alerts', {
          params: { path: { tenant_id: tenant }, query },
        }),
      )
      return { ...page, nowMs }
    },
    initialPageParam: null as Place | null,
    getNextPageParam: ({ next_cursor: cursor, nowMs }): Place | undefined =>
      cursor === null ? undefined : { cursor, nowMs },
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
}
