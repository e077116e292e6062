/** The allow and deny lists of a tenant as the pages read and change them. */
import { type AnswerOf, api, ok } from '../../api/client.ts'

type Page = AnswerOf<'/admin/v1/tenants/{tenant_id}/lists', 'get'>
export type ListEntry = Page['data'][number]

/** What an entry is for. */
export type Listed = Pick<ListEntry, 'kind' | 'id'>

export type ListFilters = Partial<
  Pick<ListEntry, 'list' | 'kind' | 'id'> & { state: 'active' | 'expired' }
>

/** The key of all lists of a tenant, for a refresh after a change. */
export const listsKey = (tenant: string) => ['lists', tenant]

export const loadEntries = (tenant: string, filters: ListFilters, cursor?: string) =>
  ok(
    api.GET('/admin/v1/tenants/{tenant_id}/lists', {
      params: {
        path: { tenant_id: tenant },
        query: { limit: 100, ...filters, ...(cursor === undefined ? {} : { cursor }) },
      },
    }),
  )

export type NewEntry = Pick<ListEntry, 'list' | 'kind' | 'id' | 'reason' | 'expires_at'>

export const addEntry = (tenant: string, body: NewEntry) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/lists', {
      params: { path: { tenant_id: tenant } },
      body,
    }),
  )

export const removeEntry = (tenant: string, entryId: string) =>
  ok(
    api.DELETE('/admin/v1/tenants/{tenant_id}/lists/{entry_id}', {
      params: { path: { tenant_id: tenant, entry_id: entryId } },
    }),
  )

/** The names of the lists. */
export const listNames = { allow: 'Allow list', deny: 'Deny list' } as const
