/**
 * The cases of the filters in the URL, page by page, with how many there are. The list is read
 * again only when the person wants it: until then no row moves, and its state changes in its place.
 */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { casesKey } from '../case/case.ts'
import { toCountsQuery, toListQuery } from './filters/filter-values.ts'

const pageCases = 100

export function useCaseList(tenant: string, filters: Record<string, string>) {
  return useInfiniteQuery({
    queryKey: [...casesKey(tenant), filters],
    queryFn: ({ pageParam: cursor }) =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/cases', {
          params: {
            path: { tenant_id: tenant },
            query: {
              ...toListQuery(filters),
              limit: pageCases,
              ...(cursor === '' ? {} : { cursor }),
            },
          },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: cursor }) => cursor ?? undefined,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
}

/** How many cases of the filters are open, snoozed, closed and overdue. */
export function useCaseCounts(tenant: string, filters: Record<string, string>) {
  return useQuery({
    queryKey: ['case-counts', tenant, toCountsQuery(filters)],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/cases/counts', {
          params: { path: { tenant_id: tenant }, query: toCountsQuery(filters) },
        }),
      ),
    placeholderData: (before) => before,
  })
}
