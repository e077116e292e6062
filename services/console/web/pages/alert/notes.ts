/**
 * Notes of alerts and cases. What was typed stays until it is saved, also while others are read and
 * when saving fails; leaving the page asks. Another operator in the same window does not see it.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { useLeaveGuard } from '../../components/state/leave-guard.ts'
import { useSignedIn } from '../../shell/operator.ts'

/** By operator, then by what the note is about. */
const drafts = new Map<string, Map<string, string>>()
const listeners = new Set<() => void>()

function listen(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

type Drafts = {
  isEmpty: () => boolean
  get: (id: string) => string
  keep: (id: string, text: string) => void
}

/** The notes that the operator is writing. */
function useDrafts(): Drafts {
  const { operator_id: operatorId } = useSignedIn().operator
  const own = () => drafts.get(operatorId)
  return {
    isEmpty: () => (own()?.size ?? 0) === 0,
    get: (id) => own()?.get(id) ?? '',
    keep: (id, text) => {
      const kept = own() ?? new Map<string, string>()
      drafts.set(operatorId, kept)
      if (text === '') kept.delete(id)
      else kept.set(id, text)
      for (const listener of listeners) listener()
    },
  }
}

/** The note that is being written about something. */
export function useNoteDraft(id: string): [text: string, keep: (text: string) => void] {
  const { get, keep } = useDrafts()
  const text = useSyncExternalStore(listen, () => get(id))
  return [text, (next) => keep(id, next)]
}

/** Asks before a page with unsaved notes is left. */
export function useNoteGuard(): void {
  const { isEmpty } = useDrafts()
  const unsaved = useSyncExternalStore(listen, () => !isEmpty())
  useLeaveGuard(unsaved, 'A note was not added yet. Leave this page all the same?')
}

/** What a note is about: an alert or a case. */
export type Noted = {
  id: string
  /** Of what shows the note, which is read again. */
  queryKey: readonly unknown[]
  send: (note: string) => Promise<unknown>
}

/** Adds a note and reads again what it is about. What was typed meanwhile stays. */
export function useAddNote({ id, queryKey, send }: Noted) {
  const client = useQueryClient()
  const { get, keep } = useDrafts()
  return useMutation({
    mutationFn: send,
    onSuccess: (_, note) => {
      const typed = get(id).trimStart()
      keep(id, typed.startsWith(note) ? typed.slice(note.length).trimStart() : typed)
      return client.invalidateQueries({ queryKey })
    },
  })
}

/** Goes to the form of what is shown, for the key `n`. */
export const focusNote = () => document.querySelector<HTMLElement>('[data-note]')?.focus()
