/**
 * Gives the focus back to what had it when a dialog opened: Radix does so only for a dialog with a
 * button of its own.
 */
import { useRef } from 'react'

/** What to put on the content of a dialog. */
export function useReturnFocus(): {
  onOpenAutoFocus: () => void
  onCloseAutoFocus: (event: Event) => void
} {
  const before = useRef<HTMLElement>(undefined)
  return {
    onOpenAutoFocus: () => {
      before.current = findPlace(document.activeElement)
    },
    onCloseAutoFocus: (event) => {
      if (before.current?.isConnected !== true) return
      event.preventDefault()
      before.current.focus({ preventScroll: true })
    },
  }
}

/** An entry of a menu is gone by then: the button of the menu stands for it. */
function findPlace(active: Element | null): HTMLElement | undefined {
  const button = active?.closest('[role="menu"]')?.getAttribute('aria-labelledby')
  const place = button ? document.getElementById(button) : active
  return place instanceof HTMLElement && place !== document.body ? place : undefined
}
