/** The tenants that the operator may see, and the one that the URL or the last visit names. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useEffect } from 'react'
import { type AnswerOf, api, ok } from './client.ts'

export type Tenant = AnswerOf<'/admin/v1/tenants/{tenant_id}', 'get'>

const pageTenants = 1_000
/** A fleet of tenants beyond it is found by its exact slug. */
const tenantsMax = 10_000

export const tenantsQuery = queryOptions({
  queryKey: ['tenants'],
  queryFn: async (): Promise<Tenant[]> => {
    const tenants: Tenant[] = []
    let cursor: string | undefined
    do {
      const query = { limit: pageTenants, ...(cursor === undefined ? {} : { cursor }) }
      const page = await ok(api.GET('/admin/v1/tenants', { params: { query } }))
      tenants.push(...page.data)
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined && tenants.length < tenantsMax)
    return tenants
  },
  staleTime: 60_000,
})

export const tenantQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['tenant', tenant],
    queryFn: () =>
      ok(api.GET('/admin/v1/tenants/{tenant_id}', { params: { path: { tenant_id: tenant } } })),
  })

const lastKey = 'di.tenant'

/** The tenant of this page's URL; else the last one, else the first; null when there is none. */
export function useTenant(): string | null {
  const { tenant } = useParams({ strict: false }) as { tenant?: string }
  const { data } = useQuery(tenantsQuery)
  useEffect(() => {
    if (tenant !== undefined) sessionStorage.setItem(lastKey, tenant)
  }, [tenant])
  if (tenant !== undefined) return tenant
  const last = sessionStorage.getItem(lastKey)
  const known = data?.map(({ tenant_id }) => tenant_id) ?? []
  return known.find((one) => one === last) ?? known[0] ?? null
}

/**
 * Leads a link with the wrong tenant to the tenant that the thing belongs to: what the page counts,
 * lists and changes beside it is then of the same one.
 * @param owner undefined until the thing is read
 */
export function useTenantOf(owner: string | undefined): void {
  const { tenant } = useParams({ strict: false }) as { tenant?: string }
  const navigate = useNavigate()
  useEffect(() => {
    if (owner === undefined || tenant === undefined || owner === tenant) return
    const params = (before: object) => ({ ...before, tenant: owner })
    void navigate({ to: '.', params, search: true, hash: true, replace: true })
  }, [owner, tenant, navigate])
}
