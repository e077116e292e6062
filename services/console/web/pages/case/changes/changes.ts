/**
 * Assigning and snoozing a case, shown at once and taken back within eight seconds; merging,
 * splitting and opening again, which the server does before the page shows them.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { ApiProblem, api, ok } from '../../../api/client.ts'
import { dismissToast, toast, toastFailure } from '../../../components/toast.tsx'
import { type Case, casesKey, readCaseAgain, showCase } from '../case.ts'

type State = Partial<Pick<Case, 'assignee' | 'snoozed_until'>>

export const assignCase = (caseId: string, assignee: string | null) =>
  ok(
    api.PUT('/admin/v1/cases/{case_id}/assignee', {
      params: { path: { case_id: caseId } },
      body: { assignee },
    }),
  )

export const snoozeCase = (caseId: string, until: string | null) =>
  ok(
    api.PUT('/admin/v1/cases/{case_id}/snooze', {
      params: { path: { case_id: caseId } },
      body: { until },
    }),
  )

export const mergeCase = (caseId: string, into: string) =>
  ok(
    api.POST('/admin/v1/cases/{case_id}/merge', {
      params: { path: { case_id: caseId } },
      body: { into },
    }),
  )

export const splitCase = (caseId: string, alertIds: string[]) =>
  ok(
    api.POST('/admin/v1/cases/{case_id}/split', {
      params: { path: { case_id: caseId } },
      body: { alert_ids: alertIds },
    }),
  )

export function useChangeCase(): {
  /** With null it is unassigned. */
  assign: (shown: Case, to: string | null) => void
  /** With null it wakes now. */
  snooze: (shown: Case, until: string | null) => void
} {
  const client = useQueryClient()
  return useMemo(
    () => ({
      assign: (shown: Case, to: string | null) => {
        if (shown.assignee === to) return
        const text = to === null ? 'Case unassigned' : `Case assigned to ${to}`
        const set = (assignee: string | null) => assignCase(shown.case_id, assignee)
        change(client, shown, {
          text,
          to: { assignee: to },
          from: { assignee: shown.assignee },
          send: () => set(to),
          sendBack: () => set(shown.assignee),
        })
      },
      snooze: (shown: Case, until: string | null) => {
        if (shown.state !== 'OPEN' || shown.snoozed_until === until) return
        const set = (at: string | null) => snoozeCase(shown.case_id, at)
        change(client, shown, {
          text: until === null ? 'Case is back in the queue' : 'Case snoozed',
          to: { snoozed_until: until },
          from: { snoozed_until: shown.snoozed_until },
          send: () => set(until),
          sendBack: () => set(shown.snoozed_until),
        })
      },
    }),
    [client],
  )
}

function change(
  client: QueryClient,
  { case_id: id, tenant_id: tenant }: Case,
  {
    text,
    to,
    from,
    send,
    sendBack,
  }: {
    text: string
    to: State
    from: State
    send: () => Promise<unknown>
    sendBack: () => Promise<unknown>
  },
): void {
  const readAgain = () => {
    void readCaseAgain(client, id)
    void client.invalidateQueries({ queryKey: ['case-counts', tenant] })
  }
  /** @returns whether it has arrived */
  const show = async (state: State, before: State, call: () => Promise<unknown>) => {
    showCase(client, { case_id: id, ...state })
    try {
      await call()
      return true
    } catch (error) {
      showCase(client, { case_id: id, ...before })
      toastFailure(`Not saved: ${error instanceof ApiProblem ? error.message : 'it was not sent.'}`)
      return false
    } finally {
      readAgain()
    }
  }
  const sent = show(to, from, send)
  const onUndo = () => {
    void sent.then((arrived) => arrived && show(from, to, sendBack))
  }
  const note = toast(text, { onUndo })
  void sent.then((arrived) => {
    if (!arrived) dismissToast(note)
  })
}

/** Reads the queues of a tenant again, after cases have come or gone. */
export function readQueuesAgain(client: QueryClient, tenant: string): void {
  void client.invalidateQueries({ queryKey: casesKey(tenant) })
  void client.invalidateQueries({ queryKey: ['case-counts', tenant] })
  void client.invalidateQueries({ queryKey: ['case'] })
}
