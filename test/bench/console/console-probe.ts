/**
 * A browser's own measurements of a page: paints, layout shifts, keys, and the time at which a text
 * appears. The probe runs in every page before the page's own scripts; it is a text, because the
 * types of a browser are not available here.
 */
import type { Page } from 'playwright-core'

/** The probe's measurements since the page was opened, in ms of the page's own clock. */
export type Seen = { paintMs: number; shift: number; keysMs: number[] }

/** A message event runs after the frame of the preceding animation callback. */
const probe = `
  globalThis.probe = { paintMs: 0, shift: 0, keysMs: [], clickMs: 0 }
  const observe = (type, on) => {
    const observer = new PerformanceObserver((list) => list.getEntries().forEach(on))
    observer.observe({ type, buffered: true })
  }
  observe('largest-contentful-paint', ({ startTime }) => { probe.paintMs = startTime })
  observe('layout-shift', ({ value, hadRecentInput }) => {
    if (!hadRecentInput) probe.shift += value
  })
  addEventListener('click', ({ timeStamp }) => { probe.clickMs = timeStamp }, { capture: true })
  addEventListener('keydown', ({ timeStamp }) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = () => probe.keysMs.push(performance.now() - timeStamp)
      port2.postMessage(0)
    })
  }, { capture: true })
`

/** Adds the probe to all pages that this one opens from now on. */
export const addProbe = (page: Page): Promise<unknown> => page.addInitScript(probe)

export const readSeen = (page: Page): Promise<Seen> => page.evaluate('probe')

/** When a text appeared in the list of alerts, by both clocks, and the last click before it. */
export type Appeared = { atMs: number; wallMs: number; clickMs: number }

/**
 * Waits for a text in the list of alerts. Call it before the action that makes it appear.
 * @param pattern a regular expression
 */
export function awaitText(page: Page, pattern: string): Promise<Appeared> {
  return page.evaluate(`new Promise((resolve) => {
    const expected = new RegExp(${JSON.stringify(pattern)})
    const check = () => {
      const list = document.querySelector('section[aria-label=List]')
      if (!expected.test(list?.textContent ?? '')) return
      observer.disconnect()
      resolve({ atMs: performance.now(), wallMs: Date.now(), clickMs: probe.clickMs })
    }
    const observer = new MutationObserver(check)
    observer.observe(document.body, { subtree: true, childList: true, characterData: true })
    check()
  })`)
}

/** Transferred bytes of the page's scripts and style sheets. */
export const readWeight = (page: Page): Promise<{ js: number; css: number }> =>
  page.evaluate(`(() => {
    const sum = (ending) => performance.getEntriesByType('resource')
      .filter(({ name }) => new URL(name).pathname.endsWith(ending))
      .reduce((bytes, { encodedBodySize }) => bytes + encodedBodySize, 0)
    return { js: sum('.js'), css: sum('.css') }
  })()`)

export const countRows = (page: Page): Promise<number> =>
  page.evaluate(
    `document.querySelectorAll('tbody tr, [role=row], [data-alert], [data-case]').length`,
  )
