/** A dialog for what cannot be undone, and for forms that need the whole attention. */
import { Dialog as Primitive } from 'radix-ui'
import type { ReactNode } from 'react'
import { IconButton } from './button.tsx'
import { useReturnFocus } from './state/return-focus.ts'

export function Dialog({
  title,
  description,
  open,
  onClose,
  children,
  locked = false,
}: {
  title: string
  description?: ReactNode
  open: boolean
  onClose: () => void
  children: ReactNode
  /** Cannot be closed while something is under way, or while a secret was not confirmed. */
  locked?: boolean
}) {
  const focus = useReturnFocus(open)
  return (
    <Primitive.Root onOpenChange={(next) => !next && !locked && onClose()} open={open}>
      <Primitive.Portal>
        <Primitive.Overlay className="fixed inset-0 z-40 bg-shade" />
        <Primitive.Content
          {...focus}
          {...(description === undefined ? { 'aria-describedby': undefined } : {})}
          className={
            'fixed top-1/2 left-1/2 z-50 grid max-h-[calc(100dvh-2rem)] w-[calc(100vw-2rem)] ' +
            'max-w-lg -translate-x-1/2 -translate-y-1/2 gap-4 overflow-y-auto rounded-lg border ' +
            'border-line bg-raised p-5 shadow-2xl'
          }
        >
          <div className="flex items-start justify-between gap-4">
            <Primitive.Title className="font-semibold text-lg">{title}</Primitive.Title>
            {!locked && <IconButton icon="close" label="Close" onClick={onClose} />}
          </div>
          {description !== undefined && (
            <Primitive.Description asChild>
              <div className="-mt-2 text-muted">{description}</div>
            </Primitive.Description>
          )}
          {children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}

/** The buttons of a dialog, the action last. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap justify-end gap-2 pt-1">{children}</div>
}
