// A walk over all pages of the console while no answer comes, and then one of 503: each page says
// so by itself, and fits a narrow screen meanwhile.
import type { Page, Route } from 'playwright-core'
import { until } from '../process/until.ts'
import { listPaths } from './screenshots/places.ts'

type Shown = {
  /** Parts that are not there yet. */
  waits: number
  text: string
  /** Pixels by which it is too wide. */
  over: number
}

const readShown = (page: Page): Promise<Shown> =>
  page.evaluate(`(() => {
    const main = document.getElementById('main')
    return {
      waits: main.querySelectorAll('.skeleton').length,
      text: main.textContent,
      over: Math.max(
        main.scrollWidth - main.clientWidth,
        document.documentElement.scrollWidth - innerWidth,
      ),
    }
  })()`)

/** A failed read is tried again after one and two seconds; a page says after 5 s that it waits. */
const stepMs = 2_100
/** How long the page itself, whose clock is set forward, takes at most. */
const limitMs = 30_000

/**
 * @param page signed in; its calls have no answer afterwards
 * @returns a line for each page that was silent, or too wide for 320 px
 */
export async function findSilentPages(page: Page, tenant: string): Promise<string[]> {
  await page.setViewportSize({ width: 320, height: 640 })
  await page.clock.install()
  await page.goto('/account')
  await page.getByRole('heading', { name: 'Account' }).waitFor()
  const held: Route[] = []
  let isFailing = false
  let answering = 0
  const fail = async (route: Route) => {
    answering++
    await route
      .fulfill({ status: 503, json: { status: 503, code: 'unavailable', detail: 'Later.' } })
      // The page has left it.
      .catch(() => undefined)
    answering--
  }
  await page.route(/\/admin\/v1\/(?!session$)/, (route) => {
    if (isFailing) return fail(route)
    held.push(route)
    return undefined
  })
  /** The clock goes on until the page shows what it must; else what it shows at last. */
  const see = async (isRight: (shown: Shown) => boolean): Promise<Shown> => {
    let shown = await readShown(page)
    await until(
      'the page says it',
      async () => {
        // A period that ends now moves on: no faster than answers come.
        if (answering === 0) await page.clock.fastForward(stepMs)
        shown = await readShown(page)
        return isRight(shown)
      },
      limitMs,
    ).catch(() => undefined)
    return shown
  }

  const found: string[] = []
  for (const path of await listPaths()) {
    isFailing = false
    const address = path.replace('$tenant', tenant).replaceAll('$', '')
    // Within the document: its title comes with the page.
    await page.evaluate(`{ document.title = ''; history.pushState(null, '', '${address}') }`)
    await until(`${path} is there`, async () => (await page.title()) !== '', limitMs)
    const slow = await see(({ waits, text }) => waits === 0 || /has not answered for/.test(text))
    if (slow.waits > 0 && !/has not answered for/.test(slow.text)) found.push(`${path}: waits`)
    isFailing = true
    for (const route of held.splice(0)) await fail(route)
    const failed = await see(({ waits }) => waits === 0)
    if (failed.waits > 0) found.push(`${path}: never fails`)
    if (slow.waits > 0 && !/could not be loaded/.test(failed.text)) found.push(`${path}: silent`)
    const over = Math.max(slow.over, failed.over)
    if (over > 0) found.push(`${path}: ${over} px too wide`)
  }
  return found
}
