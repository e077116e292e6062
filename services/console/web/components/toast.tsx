/** Short notes at the bottom, with Undo for eight seconds where an action can be undone. */
import { Toast as Primitive } from 'radix-ui'
import { useSyncExternalStore } from 'react'
import { Button, IconButton } from './button.tsx'

const undoMs = 8_000
const toastsMax = 3

type Toast = { id: number; text: string; onUndo?: (() => void) | undefined }

let toasts: Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function change(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

/**
 * Shows a note; the oldest leaves when there are more than three.
 * @returns its id, for `dismissToast`
 */
export function toast(text: string, more: { onUndo?: () => void } = {}): number {
  const id = ++lastId
  change([...toasts, { id, text, onUndo: more.onUndo }].slice(-toastsMax))
  return id
}

/** Removes a note, for example one that has turned out wrong. */
export const dismissToast = (id: number): void => change(toasts.filter((one) => one.id !== id))

/** The newest note that offers to undo something, as its id; 0 without one. */
export const newestUndo = (): number =>
  toasts.findLast(({ onUndo }) => onUndo !== undefined)?.id ?? 0

/** Undoes what the newest note that is still shown offers to undo. */
export function undoLast(): void {
  const last = toasts.findLast(({ onUndo }) => onUndo !== undefined)
  if (last === undefined) return
  dismissToast(last.id)
  last.onUndo?.()
}

/** Mount it once. */
export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <Primitive.Provider duration={undoMs} label="Note">
      {shown.map(({ id, text, onUndo }) => (
        <Primitive.Root
          className="flex items-center gap-3 rounded-lg border border-line bg-raised py-2 pr-2 pl-4 shadow-xl"
          key={id}
          onOpenChange={(open) => !open && dismissToast(id)}
          open
        >
          <Primitive.Description className="flex-1">{text}</Primitive.Description>
          {onUndo && (
            <Primitive.Action altText="Undo" asChild onClick={onUndo}>
              <Button small>Undo</Button>
            </Primitive.Action>
          )}
          <Primitive.Close asChild>
            <IconButton icon="close" label="Dismiss" />
          </Primitive.Close>
        </Primitive.Root>
      ))}
      <Primitive.Viewport
        label="Notes"
        className="fixed bottom-4 left-1/2 z-50 grid w-[min(28rem,calc(100vw-2rem))] -translate-x-1/2 gap-2"
      />
    </Primitive.Provider>
  )
}
