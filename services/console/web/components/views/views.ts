/** Saved views: filters of a page under a name, kept on the server, own or shared. */
import { queryOptions } from '@tanstack/react-query'
import type { SavedViewBody } from '#shared/core/operators/saved-view-schemas.ts'
import { api, ok } from '../../api/client.ts'
import type { Search } from '../state/url-state.ts'

export type ViewKind = SavedViewBody['kind']

/** The operator's own views of a page, and those that others share. */
export const viewsQuery = (tenant: string, kind: ViewKind) =>
  queryOptions({
    queryKey: ['views', tenant, kind],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/saved-views', {
          params: { path: { tenant_id: tenant }, query: { kind } },
        }),
      ),
  })

/** Saves a view; one of the operator's with the same name is replaced. */
export const saveView = (tenant: string, view: SavedViewBody) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/saved-views', {
      params: { path: { tenant_id: tenant } },
      body: view,
    }),
  )

/** Whether two sets of filters are the same. */
export function isSameView(a: Search, b: Search): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => (a[name] ?? '') === (b[name] ?? ''))
}
