/**
 * Short notes below the page, where they cover neither a list nor a form: the newest alone, with
 * how many are before it. One offers Undo for eight seconds where an action can be undone; one of a
 * failure is red, stays, and offers to try again.
 */
import { Toast as Primitive } from 'radix-ui'
import { type ReactNode, useSyncExternalStore } from 'react'
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

/** Undoes what the newest note that is still kept offers to undo. */
export function undoLast(): void {
  const last = toasts.findLast(({ onUndo }) => onUndo !== undefined)
  if (last === undefined) return
  dismissToast(last.id)
  last.onUndo?.()
}

/** Mount it once, around what has the `ToastPlace`. */
export function Toasts({ children }: { children: ReactNode }) {
  const kept = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
  const shown = kept.at(-1)
  return (
    <Primitive.Provider duration={undoMs} label="Note">
      {children}
      {shown !== undefined && <Note before={kept.length - 1} key={shown.id} note={shown} />}
    </Primitive.Provider>
  )
}

function Note({ note, before }: { note: Toast; before: number }) {
  const { id, text, isFailure, onUndo, onRetry } = note
  return (
    <Primitive.Root
      className={classes(
        'flex items-center gap-3 border-t py-2 pr-2 pl-4',
        isFailure ? 'border-bad bg-bad-soft text-bad' : 'border-line-strong bg-raised',
      )}
      duration={isFailure ? Number.POSITIVE_INFINITY : undoMs}
      onOpenChange={(open) => !open && dismissToast(id)}
      open
      type={isFailure ? 'foreground' : 'background'}
    >
      {isFailure && <Icon name="warning" />}
      <Primitive.Description className="min-w-0 flex-1 break-words">{text}</Primitive.Description>
      {before > 0 && (
        <span className="text-muted text-sm whitespace-nowrap">{before} before it</span>
      )}
      {onUndo && (
        <Primitive.Action altText="Undo" asChild onClick={onUndo}>
          <Button small>Undo</Button>
        </Primitive.Action>
      )}
      {onRetry && (
        <Primitive.Action altText="Retry" asChild onClick={onRetry}>
          <Button small>Retry</Button>
        </Primitive.Action>
      )}
      <Primitive.Close asChild>
        <IconButton icon="close" label="Dismiss" />
      </Primitive.Close>
    </Primitive.Root>
  )
}

/** Where the notes are: a row of the layout, without a height while there is none. */
export function ToastPlace() {
  return <Primitive.Viewport className="shrink-0 outline-none" label="Notes" />
}
