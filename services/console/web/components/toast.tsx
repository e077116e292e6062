/**
 * Short notes below the page, where they cover neither a list nor a form: the newest alone, with
 * how many are before it. One offers Undo for eight seconds where an action can be undone; one of a
 * failure is red, stays, and offers to try again.
 */
import { useEffect, useState, useSyncExternalStore } from 'react'
import { Button, IconButton } from './button.tsx'
import { classes } from './classes.ts'
import { Icon } from './icons.tsx'

const undoMs = 8_000
const toastsMax = 3

type Toast = {
  id: number
  text: string
  isFailure: boolean
  onUndo?: (() => void) | undefined
  onRetry?: (() => void) | undefined
}

let toasts: Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function change(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

function add(note: Omit<Toast, 'id'>): number {
  const id = ++lastId
  // The same failure again is not one more.
  const others = toasts.filter(({ text, isFailure }) => !(isFailure && text === note.text))
  change([...others, { id, ...note }].slice(-toastsMax))
  return id
}

/**
 * Shows a note that names what it is about; the oldest leaves when there are more than three.
 * @returns its id, for `dismissToast`
 */
export const toast = (text: string, { onUndo }: { onUndo?: () => void } = {}): number =>
  add({ text, isFailure: false, onUndo })

/** Shows what failed: a note that stays until it is closed or tried again. */
export const toastFailure = (text: string, { onRetry }: { onRetry?: () => void } = {}): number =>
  add({ text, isFailure: true, onRetry })

/** Removes a note, for example one that has turned out wrong. */
export const dismissToast = (id: number): void => change(toasts.filter((one) => one.id !== id))

/** The newest note that offers to undo something, as its id; 0 without one. */
export const newestUndo = (): number =>
  toasts.findLast(({ onUndo }) => onUndo !== undefined)?.id ?? 0

/** Undoes what the newest note that is still kept offers to undo. */
export function undoLast(): void {
  const last = toasts.findLast(({ onUndo }) => onUndo !== undefined)
  if (last === undefined) return
  dismissToast(last.id)
  last.onUndo?.()
}

/** Where the notes are: a row of the layout, without a height while there is none. Mount it once. */
export function Toasts() {
  const kept = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
  const shown = kept.at(-1)
  return (
    <section aria-label="Notes" aria-live="polite" className="shrink-0">
      {shown !== undefined && <Note before={kept.length - 1} key={shown.id} note={shown} />}
    </section>
  )
}

function Note({ note, before }: { note: Toast; before: number }) {
  const { id, text, isFailure, onUndo, onRetry } = note
  // Whoever is about to press a button of it has the time to.
  const [isHeld, hold] = useState(false)
  const close = () => dismissToast(id)
  useEffect(() => {
    if (isHeld || isFailure) return
    const timer = setTimeout(() => dismissToast(id), undoMs)
    return () => clearTimeout(timer)
  }, [isHeld, isFailure, id])
  const act = (work: () => void) => () => {
    close()
    work()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the handlers only stop its clock
    <div
      className={classes(
        'flex items-center gap-3 border-t py-2 pr-2 pl-4',
        isFailure ? 'border-bad bg-bad-soft text-bad' : 'border-line-strong bg-raised',
      )}
      onBlur={() => hold(false)}
      onFocus={() => hold(true)}
      onPointerEnter={() => hold(true)}
      onPointerLeave={() => hold(false)}
      role={isFailure ? 'alert' : undefined}
    >
      {isFailure && <Icon name="warning" />}
      <span className="min-w-0 flex-1 break-words">{text}</span>
      {before > 0 && <span className="text-sm whitespace-nowrap">{before} before it</span>}
      {onUndo && (
        <Button onClick={act(onUndo)} small>
          Undo
        </Button>
      )}
      {onRetry && (
        <Button onClick={act(onRetry)} small>
          Retry
        </Button>
      )}
      <IconButton icon="close" label="Dismiss" onClick={close} />
    </div>
  )
}
