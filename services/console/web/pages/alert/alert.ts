/** Alerts as the pages read them: in lists, and one with all about it. */
import { type InfiniteData, type QueryClient, queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type AlertPage = AnswerOf<'/admin/v1/tenants/{tenant_id}/alerts', 'get'>
export type Alert = AlertPage['data'][number]
/** An alert with its notes, history, deliveries and explanation. */
export type AlertRecord = AnswerOf<'/admin/v1/alerts/{alert_id}', 'get'>

export const alertQuery = (alertId: string) =>
  queryOptions({
    queryKey: ['alert', alertId],
    queryFn: () =>
      ok(api.GET('/admin/v1/alerts/{alert_id}', { params: { path: { alert_id: alertId } } })),
  })

/**
 * Changes alerts wherever a page shows them: in lists and by themselves.
 * @param change returns the same object for an alert that stays as it is
 */
export function patchAlerts(client: QueryClient, change: (alert: Alert) => Alert): void {
  client.setQueriesData<InfiniteData<AlertPage>>({ queryKey: ['alerts'] }, (lists) => {
    if (lists === undefined) return lists
    return {
      ...lists,
      pages: lists.pages.map((page) => ({ ...page, data: page.data.map(change) })),
    }
  })
  client.setQueriesData<AlertRecord>({ queryKey: ['alert'] }, (record) => {
    return record && { ...record, alert: change(record.alert) }
  })
}
