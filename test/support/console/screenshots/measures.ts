// What can be measured on a page without looking at it.
import type { Page } from 'playwright-core'

/** Texts that are cut off and that no title tells, at most five. */
export const findCutTexts = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const cut = new Set()
    for (const element of document.querySelectorAll('main *, [role=dialog] *, header *')) {
      const { overflowX, textOverflow, display } = getComputedStyle(element)
      if (display === 'inline' || overflowX === 'visible') continue
      if (overflowX !== 'hidden' && overflowX !== 'clip' && textOverflow !== 'ellipsis') continue
      if (element.clientWidth < 3 || element.scrollWidth <= element.clientWidth + 1) continue
      element.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))
      const text = element.textContent.trim()
      if (text === '' || element.closest('[title]') || element.querySelector('[title]')) continue
      cut.add(text.slice(0, 40))
    }
    return [...cut].slice(0, 5)
  })()`)

/** Elements of the page that reach beyond its right edge where nothing scrolls them. */
export const findOutside = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const isScrolled = (element) => {
      for (let at = element.parentElement; at !== null && at.id !== 'main'; at = at.parentElement) {
        const { overflowX } = getComputedStyle(at)
        if (overflowX !== 'visible') return true
      }
      return false
    }
    return [...document.querySelectorAll('#main *')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
      .filter((element) => !isScrolled(element) && !element.closest('.sr-only'))
      .slice(0, 3)
      .map((element) => element.outerHTML.slice(0, 120))
  })()`)

/** Measures how far parts of a page move by themselves, in all pages that are opened from now on. */
export const watchShifts = (page: Page): Promise<unknown> =>
  page.addInitScript(`
    globalThis.shifts = []
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (!hadRecentInput) shifts.push([value, sources[0]?.node?.outerHTML?.slice(0, 120) ?? ''])
      }
    }).observe({ type: 'layout-shift', buffered: true })
  `)

/** The sum of all shifts, and what moved the most. */
export const readShift = (page: Page): Promise<{ shift: number; moved: string }> =>
  page.evaluate(`({
    shift: shifts.reduce((sum, [value]) => sum + value, 0),
    moved: shifts.toSorted(([one], [other]) => other - one)[0]?.[1] ?? '',
  })`)

/** Whether parts of the page are still not there. */
export const isWaiting = async (page: Page): Promise<boolean> =>
  (await page.getByRole('main').locator('.skeleton').count()) > 0

/** How high the window must be to show the whole page, in px; a dialog or menu fits any. */
export const readHeight = (page: Page): Promise<number> =>
  page.evaluate(`(() => {
    const main = document.getElementById('main')
    if (document.querySelector('[role=dialog], [role=menu]') !== null) return innerHeight
    return main === null ? document.documentElement.scrollHeight
      : Math.ceil(innerHeight - main.clientHeight + main.scrollHeight)
  })()`)
