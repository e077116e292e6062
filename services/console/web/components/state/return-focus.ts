/**
 * Gives the focus back to what had it when a dialog opened: Radix does so only for a dialog with a
 * button of its own.
 */
import { useState } from 'react'

/** @returns what to put on the content of the dialog */
export function useReturnFocus(open: boolean): { onCloseAutoFocus: (event: Event) => void } {
  // As it is rendered: a field that takes the focus by itself has it before any effect runs. It is
  // kept while the dialog closes, which renders it once more.
  const [kept, keep] = useState(() => ({ open, before: open ? findFocused() : undefined }))
  if (open !== kept.open) keep({ open, before: open ? findFocused() : kept.before })
  const { before } = kept
  return {
    onCloseAutoFocus: (event) => {
      event.preventDefault()
      // What opened it may be gone with what it did.
      const next = before?.isConnected === true ? before : document.getElementById('main')
      next?.focus({ preventScroll: true })
    },
  }
}

/** An entry of a menu is gone by then: the button of the menu stands for it. */
function findFocused(): HTMLElement | undefined {
  const active = document.activeElement
  const button = active?.closest('[role="menu"]')?.getAttribute('aria-labelledby')
  const place = button ? document.getElementById(button) : active
  return place instanceof HTMLElement && place !== document.body ? place : undefined
}
