/** How people work on alerts: assignees and notes. */
import { type QueryClient, useMutation, useQueryClient } from '@tanstack/react-query'
import { api, ok } from '../../api/client.ts'
import { toast } from '../../components/toast.tsx'
import { type Alert, patchAlerts } from './alert.ts'

/** Adds a note and reads the alert again. */
export function useAddNote(alertId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (note: string) =>
      ok(
        api.POST('/admin/v1/alerts/{alert_id}/notes', {
          params: { path: { alert_id: alertId } },
          body: { note },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ['alert', alertId] }),
  })
}

type Change = { alertId: string; from: string | null; to: string | null }

/** Sets assignees: shown at once, taken back when the server refuses or the person undoes it. */
export function useAssign(): (alerts: readonly Alert[], to: string | null) => void {
  const client = useQueryClient()
  return (alerts, to) => {
    const changes = alerts
      .filter(({ assignee }) => assignee !== to)
      .map(({ alert_id: alertId, assignee: from }) => ({ alertId, from, to }))
    if (changes.length === 0) return
    const sent = Promise.all(changes.map((change) => send(client, change)))
    const what = changes.length === 1 ? 'Alert' : `${changes.length} alerts`
    toast(to === null ? `${what}: unassigned` : `${what}: assigned to ${to}`, {
      onUndo: () =>
        void sent.then(() =>
          Promise.all(
            changes.map(({ alertId, from }) => send(client, { alertId, from: to, to: from })),
          ),
        ),
    })
  }
}

async function send(client: QueryClient, { alertId, from, to }: Change): Promise<void> {
  const show = (assignee: string | null) =>
    patchAlerts(client, (one) => (one.alert_id === alertId ? { ...one, assignee } : one))
  show(to)
  try {
    await ok(
      api.PUT('/admin/v1/alerts/{alert_id}/assignee', {
        params: { path: { alert_id: alertId } },
        body: { assignee: to },
      }),
    )
  } catch (error) {
    show(from)
    toast(`The assignee stays: ${error instanceof Error ? error.message : 'not sent'}`)
  }
}
