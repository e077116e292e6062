/** Cases as the pages read them: in the queue, and one with all about it. */
import { type InfiniteData, type QueryClient, queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type CasePage = AnswerOf<'/admin/v1/tenants/{tenant_id}/cases', 'get'>
/** A row of the queue. */
export type Case = CasePage['data'][number]
/** A case with its notes and history; its alerts are a list of their own. */
export type CaseRecord = AnswerOf<'/admin/v1/cases/{case_id}', 'get'>

/** The key of all queues of a tenant. */
export const casesKey = (tenant: string) => ['cases', tenant]

export const caseQuery = (caseId: string) =>
  queryOptions({
    queryKey: ['case', caseId],
    queryFn: () =>
      ok(api.GET('/admin/v1/cases/{case_id}', { params: { path: { case_id: caseId } } })),
    // Others work on it as well.
    staleTime: 0,
  })

/**
 * Changes cases wherever a page shows them.
 * @param change returns the same object for a case that stays as it is
 */
export function patchCases(client: QueryClient, change: (shown: Case) => Case): void {
  client.setQueriesData<InfiniteData<CasePage>>({ queryKey: ['cases'] }, (lists) => {
    if (lists === undefined) return lists
    return {
      ...lists,
      pages: lists.pages.map((page) => ({ ...page, data: page.data.map(change) })),
    }
  })
  client.setQueriesData<CaseRecord>({ queryKey: ['case'] }, (record) => {
    return record && { ...record, case: change(record.case) }
  })
}

/** What an answer says of a case, over what is shown of it. */
export function showCase(client: QueryClient, next: Partial<Case> & { case_id: string }): void {
  patchCases(client, (shown) => (shown.case_id === next.case_id ? { ...shown, ...next } : shown))
}

/** Reads again a case and its alerts. */
export async function readCaseAgain(client: QueryClient, caseId: string): Promise<void> {
  await Promise.all([
    client.invalidateQueries({ queryKey: ['case', caseId] }),
    client.invalidateQueries({ queryKey: ['case-alerts', caseId] }),
  ])
}
