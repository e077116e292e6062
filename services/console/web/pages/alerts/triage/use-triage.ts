/**
 * Setting dispositions: shown at once everywhere, sent to the server, and taken back when the
 * server refuses or the person undoes it within eight seconds.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useCallback, useRef } from 'react'
import { ApiProblem, api, ok } from '../../../api/client.ts'
import { toast, undoMs } from '../../../components/toast.tsx'
import { type Alert, type Disposition, patchAlerts } from '../../alert/alert.ts'
import { dispositionText } from '../../alert/disposition.tsx'

/** Calls at a time, so that a selection of many does not wait in a row. */
const callsMax = 6

type Change = { alertId: string; from: Disposition; to: Disposition }

export function useTriage(): {
  /** Sets the disposition of these alerts; those that have it already stay. */
  setDisposition: (alerts: readonly Alert[], to: Disposition) => void
  /** Undoes the last change while it can be undone. */
  undoLast: () => void
} {
  const client = useQueryClient()
  const last = useRef<{ undo: () => void; untilMs: number } | null>(null)
  const setDisposition = useCallback(
    (alerts: readonly Alert[], to: Disposition) => {
      const changes = alerts
        .filter(({ disposition }) => disposition !== to)
        .map(({ alert_id: alertId, disposition: from }) => ({ alertId, from, to }))
      if (changes.length === 0) return
      const sent = send(client, changes)
      let undone = false
      const undo = () => {
        if (undone) return
        undone = true
        const back = changes.map(({ alertId, from }) => ({ alertId, from: to, to: from }))
        show(client, back)
        // Only after the first change has arrived can it be taken back.
        void sent.then(() => send(client, back))
      }
      last.current = { undo, untilMs: Date.now() + undoMs }
      const what = changes.length === 1 ? 'Alert' : `${changes.length} alerts`
      toast(`${what}: ${dispositionText(to)}`, { onUndo: undo })
    },
    [client],
  )
  const undoLast = useCallback(() => {
    const { current } = last
    last.current = null
    if (current !== null && Date.now() < current.untilMs) current.undo()
  }, [])
  return { setDisposition, undoLast }
}

function show(client: QueryClient, changes: readonly Change[]): void {
  const to = new Map(changes.map((change) => [change.alertId, change.to]))
  patchAlerts(client, (alert) => {
    const disposition = to.get(alert.alert_id)
    return disposition === undefined ? alert : { ...alert, disposition }
  })
}

/** Shows the changes and sends them; those that are refused are shown as they were. */
async function send(client: QueryClient, changes: readonly Change[]): Promise<void> {
  show(client, changes)
  const waiting = [...changes]
  const refused: { change: Change; error: unknown }[] = []
  const work = async () => {
    for (let change = waiting.shift(); change !== undefined; change = waiting.shift()) {
      const { alertId, to } = change
      const sent = api.POST('/admin/v1/alerts/{alert_id}/disposition', {
        params: { path: { alert_id: alertId } },
        body: { disposition: to },
      })
      await ok(sent).catch((error: unknown) => refused.push({ change: change as Change, error }))
    }
  }
  await Promise.all(Array.from({ length: callsMax }, work))
  for (const { alertId } of changes) {
    void client.invalidateQueries({ queryKey: ['alert', alertId] })
  }
  const [first] = refused
  if (first === undefined) return
  show(
    client,
    refused.map(({ change: { alertId, from, to } }) => ({ alertId, from: to, to: from })),
  )
  const why = first.error instanceof ApiProblem ? first.error.message : 'the change was not sent'
  toast(`${refused.length === 1 ? 'An alert stays' : `${refused.length} alerts stay`}: ${why}`)
}
