// What a page does around its content: whether parts of it move while it loads, and whether the
// ring of each control that takes the focus is whole: there is one, and no box cuts it.
import type { Page } from 'playwright-core'

/** For `addInitScript`: `shift` is the sum of all layout shifts since the page began. */
export const watchShifts = `globalThis.shift = 0
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) shift += value
}).observe({ type: 'layout-shift', buffered: true })`

/** Runs in the page; answers with a line for each ring that is cut or missing. */
const listFaults = `(async () => {
  const focusable =
    'a[href],button:not(:disabled),input:not(:disabled),select:not(:disabled),textarea,summary,[tabindex="0"]'
  const faults = new Set()
  const nameOf = (element) =>
    element.tagName + ' "' + (element.getAttribute('aria-label') ?? element.textContent).trim().slice(0, 40) + '"'
  const dialog = [...document.querySelectorAll('[role=dialog],[role=menu]')].at(-1)
  for (const element of (dialog ?? document).querySelectorAll(focusable)) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue
    element.focus()
    if (document.activeElement !== element) continue
    // A part of an editor has the editor's ring; a node of the graph has one of its own.
    if (element instanceof SVGElement) continue
    const ringed = element.closest('.cm-editor') ?? element
    // The editor notes the focus a moment later.
    for (let tries = 0; tries < 40 && ringed !== element; tries++) {
      if (getComputedStyle(ringed).outlineStyle !== 'none') break
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
    const style = getComputedStyle(ringed)
    const isRinged = style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) > 0
    if (!isRinged) {
      faults.add(nameOf(element) + ' has no ring')
      continue
    }
    const reach = Number.parseFloat(style.outlineWidth) + Number.parseFloat(style.outlineOffset)
    const box = ringed.getBoundingClientRect()
    if (box.width === 0) continue
    let position = style.position
    for (
      let at = ringed.parentElement;
      at !== null && position !== 'fixed';
      at = at.parentElement
    ) {
      const { overflowX, overflowY, position: own } = getComputedStyle(at)
      position = own
      if (at === document.body || at === document.documentElement) continue
      const edge = at.getBoundingClientRect()
      const left = edge.left + at.clientLeft
      const top = edge.top + at.clientTop
      const over = [
        overflowX === 'visible' ? 0 : left - (box.left - reach),
        overflowX === 'visible' ? 0 : box.right + reach - (left + at.clientWidth),
        overflowY === 'visible' ? 0 : top - (box.top - reach),
        overflowY === 'visible' ? 0 : box.bottom + reach - (top + at.clientHeight),
      ]
      const most = Math.max(...over)
      if (most > 0.5) {
        const side = ['left', 'right', 'top', 'bottom'][over.indexOf(most)]
        const cutting = at.tagName + '.' + at.className.slice(0, 50)
        faults.add(nameOf(element) + ' is cut by ' + most.toFixed(1) + ' px at the ' + side + ', by ' + cutting)
        break
      }
    }
  }
  return [...faults]
})()`

/** The rings of the open dialog or menu, else of the page, that are cut or missing. */
export async function findCutRings(page: Page): Promise<string[]> {
  // The browser shows rings once a key was used.
  await page.keyboard.press('Shift')
  return page.evaluate<string[]>(listFaults)
}
