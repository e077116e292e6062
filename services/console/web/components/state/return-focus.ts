/** After a dialog the focus is where it was before: its keys work there again. */
import { useRef } from 'react'

/** What had the focus; of an item of a menu, which is gone by then, the button of its menu. */
function findOpener(): Element | null {
  const active = document.activeElement
  const menu = active?.closest('[role=menu]')
  const button = document.getElementById(menu?.getAttribute('aria-labelledby') ?? '')
  return button ?? active
}

/** @returns `onCloseAutoFocus` of a dialog's content */
export function useReturnFocus(open: boolean): (event: Event) => void {
  const opener = useRef<Element | null>(null)
  const wasOpen = useRef(false)
  // While it is rendered, before a field of the dialog takes the focus.
  if (open && !wasOpen.current) opener.current = findOpener()
  wasOpen.current = open
  return (event) => {
    event.preventDefault()
    const { current } = opener
    const isThere = current instanceof HTMLElement && current.checkVisibility()
    // What opened it may be gone with what it did.
    const next = isThere && current !== document.body ? current : document.getElementById('main')
    next?.focus()
  }
}
