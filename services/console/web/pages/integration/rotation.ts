/** The latest rotation of a tenant, followed closely while it runs, and its new keys. */
import {
  queryOptions,
  type UseMutationResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { tenantQuery, tenantsQuery } from '../../api/tenants.ts'

type Latest = AnswerOf<'/admin/v1/tenants/{tenant_id}/rotation', 'get'>
export type Rotation = NonNullable<Latest['rotation']>
export type NewKeys = AnswerOf<'/admin/v1/tenants/{tenant_id}/rotation/keys', 'post'>
export type RotationChoice = { hmac: boolean; webhook: boolean; api_key: boolean }

const runningMs = 250
/** Another person may rotate. */
const usualMs = 5_000

const rotationQuery = (tenantId: string) =>
  queryOptions({
    queryKey: ['rotation', tenantId],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/rotation', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
  })

/** @param rotating whether this page has just begun one */
export const useRotation = (tenantId: string, rotating: boolean) =>
  useQuery({
    ...rotationQuery(tenantId),
    refetchInterval: ({ state }) =>
      rotating || state.data?.rotation?.state === 'running' ? runningMs : usualMs,
  })

/** Reads again what a rotation changes. */
function useRefresh(tenantId: string): () => Promise<unknown> {
  const client = useQueryClient()
  return () =>
    Promise.all(
      [
        rotationQuery(tenantId).queryKey,
        tenantQuery(tenantId).queryKey,
        tenantsQuery.queryKey,
        ['stale-secret', tenantId],
      ].map((queryKey) => client.invalidateQueries({ queryKey })),
    )
}

/** Rotates; the server goes on when the page is left. */
export function useRotate(tenantId: string): UseMutationResult<NewKeys, Error, RotationChoice> {
  const refresh = useRefresh(tenantId)
  return useMutation({
    mutationFn: (choice: RotationChoice) =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/rotate', {
          params: { path: { tenant_id: tenantId } },
          body: choice,
        }),
      ) as Promise<NewKeys>,
    onSettled: refresh,
  })
}

/** Fetches the new keys again, after the page was left. */
export const useFetchKeys = (tenantId: string) =>
  useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/rotation/keys', {
          params: { path: { tenant_id: tenantId } },
          body: {},
        }),
      ),
  })

/** Removes the new keys from the server: they are kept elsewhere. */
export function useForgetKeys(tenantId: string) {
  const refresh = useRefresh(tenantId)
  return useMutation({
    mutationFn: () =>
      ok(
        api.DELETE('/admin/v1/tenants/{tenant_id}/rotation/keys', {
          params: { path: { tenant_id: tenantId } },
        }),
      ),
    onSettled: refresh,
  })
}
