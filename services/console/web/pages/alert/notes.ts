/**
 * Notes of alerts. What was typed stays until it is saved, also while other alerts are read and
 * when saving fails; leaving the page asks.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { api, ok } from '../../api/client.ts'
import { useLeaveGuard } from '../../components/leave-guard.ts'

const drafts = new Map<string, string>()
const listeners = new Set<() => void>()

function listen(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function keep(alertId: string, text: string): void {
  if (text === '') drafts.delete(alertId)
  else drafts.set(alertId, text)
  for (const listener of listeners) listener()
}

/** The note that is being written for an alert. */
export function useNoteDraft(alertId: string): [text: string, keep: (text: string) => void] {
  const text = useSyncExternalStore(listen, () => drafts.get(alertId) ?? '')
  return [text, (next) => keep(alertId, next)]
}

/** Asks before a page with unsaved notes is left. */
export function useNoteGuard(): void {
  const unsaved = useSyncExternalStore(listen, () => drafts.size > 0)
  useLeaveGuard(unsaved, 'A note was not added yet. Leave this page all the same?')
}

/** Adds a note and reads the alert again. What was typed meanwhile stays. */
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
    onSuccess: (_, note) => {
      const typed = (drafts.get(alertId) ?? '').trimStart()
      keep(alertId, typed.startsWith(note) ? typed.slice(note.length).trimStart() : typed)
      return client.invalidateQueries({ queryKey: ['alert', alertId] })
    },
  })
}

/** Goes to the form of the alert that is shown, for the key `n`. */
export const focusNote = () => document.querySelector<HTMLElement>('[data-note]')?.focus()
