/** Keys of a page: they act unless something is being typed or a menu or dialog is open. */
import { useEffect, useRef } from 'react'

const typing = 'input:not([type="checkbox"]), select, textarea, [contenteditable="true"]'
const layers = '[role="dialog"], [role="menu"], [role="listbox"]'

/** @param actions by `KeyboardEvent.key`, for example `j` and `?` */
export function useKeys(actions: Record<string, () => void>): void {
  const latest = useRef(actions)
  useEffect(() => {
    latest.current = actions
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (event.target instanceof Element && event.target.closest(typing) !== null) return
      if (document.querySelector(layers) !== null) return
      const action = latest.current[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}
