/**
 * Setting dispositions and assignees: shown at once everywhere, sent to the server with what the
 * page last saw, and taken back within eight seconds. A change that the server refuses, because
 * another change came first, shows what the alert is now.
 */

import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { ApiProblem, api, ok } from '../../api/client.ts'
import { dismissToast, toast, toastFailure } from '../../components/toast.tsx'
import { type Alert, patchAlerts } from './alert.ts'
import { dispositionText } from './disposition.tsx'

/** Calls at a time, so that a selection of many does not wait in a row. */
const callsMax = 6

type State = Pick<Alert, 'disposition' | 'assignee'>
type Field = keyof State
const stateOf = <F extends Field>(field: F, value: State[F]): Partial<State> =>
  ({ [field]: value }) as Partial<State>

type Change<F extends Field> = { alertId: string; from: State[F]; to: State[F] }

const calls: { [F in Field]: (change: Change<F>) => Promise<unknown> } = {
  disposition: ({ alertId, from, to }) =>
    ok(
      api.POST('/admin/v1/alerts/{alert_id}/disposition', {
        params: { path: { alert_id: alertId } },
        body: { disposition: to, expected_disposition: from },
      }),
    ),
  assignee: ({ alertId, from, to }) =>
    ok(
      api.PUT('/admin/v1/alerts/{alert_id}/assignee', {
        params: { path: { alert_id: alertId } },
        body: { assignee: to, expected_assignee: from },
      }),
    ),
}

const texts: { [F in Field]: (to: State[F]) => string } = {
  disposition: dispositionText,
  assignee: (to) => (to === null ? 'unassigned' : `assigned to ${to}`),
}

export function useChangeAlerts(): {
  /** Sets the disposition of these alerts; those that have it already stay. */
  setDisposition: (alerts: readonly Alert[], to: Disposition) => void
  /** Assigns these alerts; with null they are unassigned. */
  assign: (alerts: readonly Alert[], to: string | null) => void
} {
  const client = useQueryClient()
  return useMemo(
    () => ({
      setDisposition: (alerts: readonly Alert[], to: Disposition) =>
        change(client, 'disposition', alerts, to),
      assign: (alerts: readonly Alert[], to: string | null) =>
        change(client, 'assignee', alerts, to),
    }),
    [client],
  )
}

function change<F extends Field>(
  client: QueryClient,
  field: F,
  alerts: readonly Alert[],
  to: State[F],
): void {
  const changes = alerts
    .filter((alert) => alert[field] !== to)
    .map((alert): Change<F> => ({ alertId: alert.alert_id, from: alert[field], to }))
  if (changes.length === 0) return
  const sent = send(client, field, changes)
  const onUndo = () => {
    show(
      client,
      changes.map(({ alertId, from }) => [alertId, stateOf(field, from)]),
    )
    // Only what has arrived can be taken back; the rest is shown as it is.
    void sent.then((arrived) =>
      send(
        client,
        field,
        arrived.map(({ alertId, from }) => ({ alertId, from: to, to: from })),
      ),
    )
  }
  const what = changes.length === 1 ? 'Alert' : `${changes.length} alerts`
  const note = toast(`${what}: ${texts[field](to)}`, { onUndo })
  void sent.then((arrived) => {
    if (arrived.length === 0) dismissToast(note)
  })
}

function show(client: QueryClient, states: (readonly [id: string, state: Partial<State>])[]): void {
  const byId = new Map(states)
  patchAlerts(client, (alert) => {
    const state = byId.get(alert.alert_id)
    return state === undefined ? alert : { ...alert, ...state }
  })
}

/**
 * Shows the changes and sends them; those that are refused are shown as the alerts are now.
 * @returns those that have arrived
 */
async function send<F extends Field>(
  client: QueryClient,
  field: F,
  changes: readonly Change<F>[],
): Promise<Change<F>[]> {
  show(
    client,
    changes.map(({ alertId, to }) => [alertId, stateOf(field, to)]),
  )
  const waiting = [...changes]
  const arrived: Change<F>[] = []
  const refused: { change: Change<F>; error: unknown }[] = []
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const one = next
      try {
        await inTurn(client, one.alertId, () => calls[field](one))
        arrived.push(one)
      } catch (error) {
        refused.push({ change: one, error })
      }
    }
  }
  await Promise.all(Array.from({ length: callsMax }, work))
  const [first] = refused
  if (first === undefined) return arrived
  show(
    client,
    refused.map(({ change: { alertId, from }, error }) => {
      const present = error instanceof ApiProblem ? error.present : undefined
      return [alertId, present ?? stateOf(field, from)]
    }),
  )
  const why = first.error instanceof ApiProblem ? first.error.message : 'the change was not sent'
  const what = refused.length === 1 ? 'Not saved' : `${refused.length} alerts not saved`
  // One that somebody else changed meanwhile is looked at again first.
  const lost = refused.filter(({ error }) => !(error instanceof ApiProblem && error.present))
  const onRetry = () =>
    void send(
      client,
      field,
      lost.map((one) => one.change),
    )
  toastFailure(`${what}: ${why}`, lost.length === refused.length ? { onRetry } : {})
  return arrived
}

const turns = new Map<string, Promise<unknown>>()

/** Whether a change of an alert is on its way, so that what is read now may be older. */
export const isChanging = (alertId: string): boolean => turns.has(alertId)

/**
 * Sends the changes of an alert one after the other, since each says what was before. The alert is
 * read again after the last of them.
 */
function inTurn(client: QueryClient, id: string, call: () => Promise<unknown>): Promise<unknown> {
  const before = turns.get(id) ?? Promise.resolve()
  const turn = before.then(call, call).finally(() => {
    if (turns.get(id) !== turn) return
    turns.delete(id)
    void client.invalidateQueries({ queryKey: ['alert', id] })
  })
  turns.set(id, turn)
  return turn
}
