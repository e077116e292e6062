/** Proposals of a tenant, and what it wants of four eyes. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import type { paths } from '../../api/schema.ts'

const path = '/admin/v1/tenants/{tenant_id}/proposals' as const
const onePath = `${path}/{proposal_id}` as const
const lookMs = 15_000
const listMost = 100

export type Listed = AnswerOf<typeof path, 'get'>['data'][number]
export type Proposal = AnswerOf<typeof onePath, 'get'>
type Body = paths[typeof path]['post']['requestBody']['content']['application/json']
type WithoutReason<One> = One extends unknown ? Omit<One, 'reason'> : never
/** What is proposed, without its reason. */
export type Proposed = WithoutReason<Body>

export const fourEyesQuery = (tenant: string) =>
  queryOptions({
    queryKey: ['four-eyes', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/four-eyes', {
          params: { path: { tenant_id: tenant } },
        }),
      ),
    enabled: tenant !== '',
  })

/** What the tenant wants of four eyes; undefined until it is known. */
export const useFourEyes = (tenant: string) => useQuery(fourEyesQuery(tenant)).data

export const proposalsQuery = (tenant: string, state: 'open' | 'all') =>
  queryOptions({
    queryKey: ['proposals', tenant, state],
    queryFn: () =>
      ok(
        api.GET(path, {
          params: { path: { tenant_id: tenant }, query: { state, limit: listMost } },
        }),
      ),
    enabled: tenant !== '',
    refetchInterval: lookMs,
  })

export const proposalQuery = (tenant: string, id: string) =>
  queryOptions({
    queryKey: ['proposals', tenant, 'one', id],
    queryFn: () =>
      ok(api.GET(onePath, { params: { path: { tenant_id: tenant, proposal_id: id } } })),
    enabled: id !== '',
  })

export function usePropose(tenant: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (body: Body) =>
      ok(api.POST(path, { params: { path: { tenant_id: tenant } }, body })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['proposals', tenant] }),
  })
}

/** Ends a proposal; what it changes is read again. */
export function useEndProposal(tenant: string, id: string) {
  const client = useQueryClient()
  const params = { path: { tenant_id: tenant, proposal_id: id } }
  const refresh = () => client.invalidateQueries()
  return {
    approve: useMutation({
      mutationFn: () => ok(api.POST(`${onePath}/approve`, { params, body: {} })),
      onSettled: refresh,
    }),
    reject: useMutation({
      mutationFn: (note: string) => ok(api.POST(`${onePath}/reject`, { params, body: { note } })),
      onSettled: refresh,
    }),
    withdraw: useMutation({
      mutationFn: () => ok(api.POST(`${onePath}/withdraw`, { params, body: {} })),
      onSettled: refresh,
    }),
  }
}
