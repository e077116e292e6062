/**
 * Gives the focus back to what had it when a dialog opened: Radix does so only for a dialog with a
 * button of its own.
 */
import { useMemo } from 'react'

/** @returns what to put on the content of the dialog */
export function useReturnFocus(open: boolean): { onCloseAutoFocus: (event: Event) => void } {
  // As it is rendered: a field that takes the focus by itself has it before any effect runs.
  const before = useMemo(() => (open ? findPlace(document.activeElement) : undefined), [open])
  return {
    onCloseAutoFocus: (event) => {
      if (before?.isConnected !== true) return
      event.preventDefault()
      before.focus({ preventScroll: true })
    },
  }
}

/** An entry of a menu is gone by then: the button of the menu stands for it. */
function findPlace(active: Element | null): HTMLElement | undefined {
  const button = active?.closest('[role="menu"]')?.getAttribute('aria-labelledby')
  const place = button ? document.getElementById(button) : active
  return place instanceof HTMLElement && place !== document.body ? place : undefined
}
