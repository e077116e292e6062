/** What an engineer does to a tenant's webhook; each shows its result and refreshes the page. */
import { type InfiniteData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect } from 'react'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { tenantQuery, tenantsQuery } from '../../api/tenants.ts'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { toast, toastFailure } from '../../components/toast.tsx'

export type Delivery = AnswerOf<'/admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}', 'get'>

export const deliveriesKey = (tenantId: string) => ['deliveries', tenantId]

type Page = AnswerOf<'/admin/v1/tenants/{tenant_id}/deliveries', 'get'>
const runningMs = 500
const endedMs = 5_000

/** One delivery, watched; lists that are read less often show the same of it. */
export function useDelivery(tenantId: string, deliveryId: string) {
  const client = useQueryClient()
  const params = { path: { tenant_id: tenantId, delivery_id: deliveryId } }
  const delivery = useQuery({
    queryKey: ['delivery', tenantId, deliveryId],
    queryFn: () =>
      ok(api.GET('/admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}', { params })),
    refetchInterval: ({ state: { data } }) => (data?.ended_at === null ? runningMs : endedMs),
  })
  const { data } = delivery
  useEffect(() => {
    if (data === undefined) return
    const put = (page: Page): Page => ({
      ...page,
      data: page.data.map((row) => (row.delivery_id === data.delivery_id ? data : row)),
    })
    client.setQueriesData<Partial<InfiniteData<Page>>>(
      { queryKey: deliveriesKey(tenantId) },
      (list) => list?.pages && { ...list, pages: list.pages.map(put) },
    )
  }, [client, data, tenantId])
  return delivery
}

/** Reads the webhook and its deliveries again. */
export function useRefreshWebhook(tenantId: string): () => Promise<unknown> {
  const client = useQueryClient()
  return useCallback(
    () =>
      Promise.all([
        client.invalidateQueries({ queryKey: tenantQuery(tenantId).queryKey }),
        client.invalidateQueries({ queryKey: tenantsQuery.queryKey }),
        client.invalidateQueries({ queryKey: deliveriesKey(tenantId) }),
        client.invalidateQueries({ queryKey: ['delivery', tenantId] }),
      ]),
    [client, tenantId],
  )
}

export function useWebhookActions(tenantId: string) {
  const refresh = useRefreshWebhook(tenantId)
  const client = useQueryClient()
  const [, setSearch] = useUrlSearch()
  const params = { path: { tenant_id: tenantId } }
  /** @param what was not done, with its object */
  const failed =
    <Values>(what: string, again: (values: Values) => void) =>
    (error: Error, values: Values) =>
      toastFailure(`${what}: ${error.message}`, { onRetry: () => again(values) })
  const test = useMutation({
    mutationFn: () => ok(api.POST('/admin/v1/tenants/{tenant_id}/deliveries/test', { params })),
    onSuccess: (sent) => {
      const { delivery_id } = sent
      // Its state from the first moment on, wherever it is shown.
      client.setQueryData(['delivery', tenantId, delivery_id], sent)
      setSearch({ tab: '', state: '', delivery: delivery_id })
      return refresh()
    },
    onError: failed(`The webhook of ${tenantId} was not tested`, () => test.mutate()),
  })
  const pause = useMutation({
    mutationFn: () => ok(api.POST('/admin/v1/tenants/{tenant_id}/webhook/pause', { params })),
    onSuccess: () => {
      toast(`The webhook of ${tenantId} is paused; its deliveries wait.`, {
        onUndo: () => resume.mutate(),
      })
      return refresh()
    },
    onError: failed(`The webhook of ${tenantId} was not paused`, () => pause.mutate()),
  })
  const resume = useMutation({
    mutationFn: () => ok(api.POST('/admin/v1/tenants/{tenant_id}/webhook/resume', { params })),
    onSuccess: () => {
      toast(`The webhook of ${tenantId} is on.`)
      return refresh()
    },
    onError: failed(`The webhook of ${tenantId} was not resumed`, () => resume.mutate()),
  })
  const replay = useMutation({
    mutationFn: (alertId: string) =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/deliveries/replay', {
          params,
          body: { alert_id: alertId, failed: false },
        }),
      ),
    onSuccess: ({ replayed }) => {
      toast(replayed === 1 ? 'The delivery is sent again.' : 'It is being sent at the moment.')
      return refresh()
    },
    onError: failed('The delivery was not sent again', (id: string) => replay.mutate(id)),
  })
  return { test, pause, resume, replay }
}
