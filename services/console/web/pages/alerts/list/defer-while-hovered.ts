/** Rows never move under the pointer: what would move them waits until it has left the list. */

/**
 * Acts at once when the pointer is not over the list of alerts, else when it leaves.
 * @returns for the end of an effect: acts if it has not yet, since the list is then another one
 */
export function deferWhileHovered(act: () => void): () => void {
  const list = document.querySelector('[data-alert-list]:hover')
  let waiting = true
  const once = () => {
    if (!waiting) return
    waiting = false
    list?.removeEventListener('pointerleave', once)
    act()
  }
  if (list === null) once()
  else list.addEventListener('pointerleave', once)
  return once
}
