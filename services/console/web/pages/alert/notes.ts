/**
 * Notes of alerts. What was typed stays until it is saved, also while other alerts are read and
 * when saving fails; leaving the page asks. Another operator in the same window does not see it.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { api, ok } from '../../api/client.ts'
import { useLeaveGuard } from '../../components/state/leave-guard.ts'
import { useSignedIn } from '../../shell/operator.ts'

/** By operator, then by alert. */
const drafts = new Map<string, Map<string, string>>()
const listeners = new Set<() => void>()

function listen(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

type Drafts = {
  isEmpty: () => boolean
  get: (alertId: string) => string
  keep: (alertId: string, text: string) => void
}

/** The notes that the operator is writing. */
function useDrafts(): Drafts {
  const { operator_id: operatorId } = useSignedIn().operator
  const own = () => drafts.get(operatorId)
  return {
    isEmpty: () => (own()?.size ?? 0) === 0,
    get: (alertId) => own()?.get(alertId) ?? '',
    keep: (alertId, text) => {
      const kept = own() ?? new Map<string, string>()
      drafts.set(operatorId, kept)
      if (text === '') kept.delete(alertId)
      else kept.set(alertId, text)
      for (const listener of listeners) listener()
    },
  }
}

/** The note that is being written for an alert. */
export function useNoteDraft(alertId: string): [text: string, keep: (text: string) => void] {
  const { get, keep } = useDrafts()
  const text = useSyncExternalStore(listen, () => get(alertId))
  return [text, (next) => keep(alertId, next)]
}

/** Asks before a page with unsaved notes is left. */
export function useNoteGuard(): void {
  const { isEmpty } = useDrafts()
  const unsaved = useSyncExternalStore(listen, () => !isEmpty())
  useLeaveGuard(unsaved, 'A note was not added yet. Leave this page all the same?')
}

/** Adds a note and reads the alert again. What was typed meanwhile stays. */
export function useAddNote(alertId: string) {
  const client = useQueryClient()
  const { get, keep } = useDrafts()
  return useMutation({
    mutationFn: (note: string) =>
      ok(
        api.POST('/admin/v1/alerts/{alert_id}/notes', {
          params: { path: { alert_id: alertId } },
          body: { note },
        }),
      ),
    onSuccess: (_, note) => {
      const typed = get(alertId).trimStart()
      keep(alertId, typed.startsWith(note) ? typed.slice(note.length).trimStart() : typed)
      return client.invalidateQueries({ queryKey: ['alert', alertId] })
    },
  })
}

/** Goes to the form of the alert that is shown, for the key `n`. */
export const focusNote = () => document.querySelector<HTMLElement>('[data-note]')?.focus()
