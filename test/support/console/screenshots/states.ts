// What the console may meet while a page opens: answers that do not come, and answers that say that
// a part of the service is away. Nothing that a page sends changes the stack meanwhile.
import type { Page, Route } from 'playwright-core'

const calls = '**/admin/v1/**'
/** What the shell needs before any page is there. */
const ofShell = /\/admin\/v1\/session/

export type Hold = {
  /** Lets the calls that wait end without an answer, and all others pass. */
  release: () => Promise<void>
}

/** No call of the page has an answer; the shell has its own. */
export async function holdAnswers(page: Page): Promise<Hold> {
  const held: Route[] = []
  await page.route(calls, (route) => {
    if (ofShell.test(route.request().url())) return route.continue()
    held.push(route)
    return undefined
  })
  return {
    release: async () => {
      await page.unroute(calls)
      for (const route of held) await route.abort().catch(() => undefined)
    },
  }
}

/** Every call of the page is answered with 503. */
export async function failAnswers(page: Page): Promise<Hold> {
  await page.route(calls, (route) =>
    ofShell.test(route.request().url())
      ? route.continue()
      : route.fulfill({
          status: 503,
          headers: { 'x-request-id': 'req_0123456789abcdef' },
          json: { status: 503, code: 'unavailable', detail: 'The database cannot be reached now.' },
        }),
  )
  return { release: () => page.unroute(calls) }
}

/** Lists are empty, where no tenant without data can show it. */
export async function emptyAnswers(page: Page): Promise<Hold> {
  const answer = async (route: Route) => {
    const request = route.request()
    const isShell = ofShell.test(request.url()) || /stream/.test(request.url())
    if (request.method() !== 'GET' || isShell) return route.fallback()
    const response = await route.fetch()
    const body: unknown = await response.json().catch(() => null)
    if (body === null || typeof body !== 'object' || !('data' in body)) {
      return route.fulfill({ response })
    }
    const none = { ...body, data: [], ...('total' in body ? { total: 0 } : {}) }
    return route.fulfill({ response, json: { ...none, next_cursor: null } })
  }
  await page.route(calls, answer)
  return { release: () => page.unroute(calls, answer) }
}

/** What is not a read is refused, so that every button may be tried. */
export async function refuseChanges(page: Page): Promise<void> {
  await page.route(calls, (route) => {
    const request = route.request()
    const isRead = request.method() === 'GET' || /\/(sql|presence|check)$/.test(request.url())
    return isRead ? route.fallback() : route.abort()
  })
}
