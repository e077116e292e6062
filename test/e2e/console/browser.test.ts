/**
 * What stands around the console: the browser's connections, clock, time zone and translator, and
 * what answers in place of the console.
 */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import type { BrowserContext, BrowserContextOptions, Page, Request } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { settle } from '../../support/console/browser.ts'
import { tellStory } from '../../support/console/story.ts'
import { translator } from '../../support/console/translator.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { until } from '../../support/process/until.ts'
import { startNginx } from '../../support/servers/nginx-server.ts'

const hooked = { debugger: { frida_detected: true }, root: { su_binary: true } }
const hourMs = 3_600_000

const story = tellStory('hooli')
const { expectNoFault } = story
let state: Awaited<ReturnType<BrowserContext['storageState']>>
let raised = 0
/** A signed-in page in a context of its own. */
const open = (options: BrowserContextOptions = {}): Promise<Page> =>
  story.open({ storageState: state, ...options })
const raise = async () => {
  const device = `hooked-${raised++}`
  await story.send({ device, session: device, signals: hooked })
}

describe('the page and what is around it', () => {
  beforeAll(async () => {
    state = await story.page.context().storageState()
  })

  it('seven tabs of alerts share one stream, and the console stays usable', async () => {
    const first = await open()
    const tabs = [first]
    while (tabs.length < 7) tabs.push(await first.context().newPage())
    const streams = new Map<Request, Page>()
    for (const tab of tabs) {
      tab.on('request', (request) => {
        if (request.url().endsWith('/alerts/stream')) streams.set(request, tab)
      })
      for (const over of ['requestfinished', 'requestfailed'] as const) {
        tab.on(over as 'requestfinished', (request) => void streams.delete(request))
      }
      await tab.goto('/t/hooli/alerts')
      await tab.getByRole('switch', { name: 'Live', exact: true }).waitFor()
    }
    expect(streams.size).toBe(1)
    await raise()
    for (const tab of tabs) await tab.getByRole('button', { name: '1 new', exact: true }).waitFor()
    // The tab with the stream is closed: another one goes on.
    const [leader] = streams.values()
    // Before: another one may begin while this one closes.
    streams.clear()
    await leader!.close()
    const others = tabs.filter((tab) => tab !== leader)
    await until('another tab has the stream', () => streams.size === 1)
    await raise()
    for (const tab of others) {
      await tab.getByRole('button', { name: '2 new', exact: true }).waitFor()
    }
    await others[0]!.getByRole('button', { name: '2 new', exact: true }).click()
    await others[0]!.getByText('2 alerts').waitFor()
    // Hidden tabs hold no connection; the first one that is shown again learns what it missed.
    const setHidden = (tab: Page, hidden: boolean) =>
      tab.evaluate(`{
          const state = { hidden: ${hidden}, visibilityState: '${hidden ? 'hidden' : 'visible'}' }
          for (const [name, value] of Object.entries(state)) {
            Object.defineProperty(document, name, { value, configurable: true })
          }
          document.dispatchEvent(new Event('visibilitychange'))
        }`)
    for (const tab of others) await setHidden(tab, true)
    await until('no stream is open', () => streams.size === 0)
    await raise()
    const shown = others.at(-1)!
    await setHidden(shown, false)
    await shown.getByRole('button', { name: '3 new', exact: true }).waitFor()
    expect(streams.size).toBe(1)
    expect([...streams.values()]).toEqual([shown])
  })

  it('nginx in front, as in deploy/proxy, has any number of streams over one connection', async () => {
    const nginx = await startNginx([new URL(story.stack.console).host], 'nginx-console.conf')
    const client = connectHttp2(nginx.url, { rejectUnauthorized: false })
    const get = (path: string) =>
      client.request({
        ':path': `/admin/v1${path}`,
        authorization: `Bearer ${story.stack.admin_token}`,
      })
    try {
      const first: Buffer[] = []
      for (let n = 0; n < 4; n++) {
        const stream = get('/tenants/hooli/alerts/stream')
        const [headers] = await once(stream, 'response')
        expect(headers[':status']).toBe(200)
        const [bytes] = await once(stream, 'data')
        first.push(bytes as Buffer)
      }
      expect(first.map(String)).toEqual(first.map(() => expect.stringContaining('event: ready')))
      const [headers] = await once(get('/tenants'), 'response')
      expect(headers[':status']).toBe(200)
    } finally {
      client.destroy()
      await nginx.stop()
    }
  })

  it('a poll with the token of before a step-up does not cover the page', async () => {
    const page = await open()
    await page.goto('/account')
    const before = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`)
    let late = 0
    await page.route('**/admin/v1/operators', async (route) => {
      // It began before the step-up, and the server reads its token afterwards.
      if (late++ > 0) return route.continue()
      const headers = { ...route.request().headers(), cookie: before.join('; ') }
      const response = await fetch(route.request().url(), { headers })
      expect(response.status).toBe(401)
      await route.fulfill({
        status: response.status,
        contentType: response.headers.get('content-type')!,
        body: await response.text(),
      })
    })
    await page.getByRole('button', { name: 'Set up' }).click()
    await page.getByRole('dialog').getByLabel('Password').fill(story.password)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByRole('heading', { name: 'Set up the second factor' }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    state = await page.context().storageState()
    await page.getByRole('link', { name: 'Admin' }).click()
    await page.getByRole('link', { name: 'Operators' }).click()
    await page.getByRole('cell', { name: story.email }).first().waitFor()
    expect(late).toBe(2)
    expect(await page.getByText('Your session has ended.').count()).toBe(0)
  })

  it.each([
    [403, '<title>Request blocked</title><p>Rule 942100', 'HTTP 403', 'Request blocked Rule 942'],
    [200, '<style>p{}</style><h1>Log in to Acme SSO</h1>', 'HTTP 200', 'Log in to Acme SSO'],
    [401, '<html><body>Proxy login needed', 'HTTP 401', 'Proxy login needed'],
    [502, '', 'HTTP 502', 'empty'],
  ])('a page of something in between, HTTP %i, is named', async (status, html, ...words) => {
    const page = await open()
    const answer = (route: { fulfill: (with_: object) => Promise<void> }) =>
      route.fulfill({ status, contentType: 'text/html; charset=utf-8', body: html })
    await page.route('**/admin/v1/tenants/hooli/overview?*', answer)
    await page.goto('/t/hooli/overview')
    const alert = page.getByRole('alert')
    await alert.getByText('did not come from the console').waitFor()
    for (const word of words) expect(await alert.textContent()).toContain(word)
    expect(await page.getByText('Your session has ended.').count()).toBe(0)
    await expectNoFault(page)
    await page.unroute('**/admin/v1/tenants/hooli/overview?*')
    // An outage is read again by itself; what else is in between waits for the person.
    if (status < 500) await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('link', { name: /^Alerts with BLOCK/ }).waitFor()
    expect(await alert.count()).toBe(0)
  })

  it('a translated page works on, shows what is new, and keeps ids and code', async () => {
    const page = await open({ bypassCSP: true })
    await page.addInitScript(translator)
    await page.goto('/t/hooli/explore?sql=select+1+as+n')
    const run = page.getByRole('button', { name: /Run/ })
    await run.click()
    await page.getByText(/^~1 row in/).waitFor()
    await page.locator('.cm-content').fill('select number as n from numbers(12)')
    await run.click()
    await page.getByText(/^~12 rows in/).waitFor()
    await page.getByRole('tab', { name: /Chart/ }).click()
    await page.getByRole('tab', { name: /Table/ }).click()
    await page.locator('.cm-content').fill('select nothing')
    await run.click()
    await page.getByText('~The query cannot be answered').waitFor()
    await page.goto('/t/hooli/alerts')
    await page.locator('[data-alert]').first().click()
    await page
      .getByText(/^~.*Open/)
      .first()
      .waitFor()
    const kept = 'code, pre, kbd, bdi, .font-mono, .cm-content'
    await until('its parts are drawn', async () => (await page.locator(kept).count()) > 4)
    expect(await page.locator(kept).filter({ hasText: '~' }).allTextContents()).toEqual([])
    for (const address of [
      ...['overview', 'policies', 'signals', 'fleet', 'webhooks', 'reconciliation'].map(
        (name) => `/t/hooli/${name}`,
      ),
      ...['tenants', 'operators', 'audit', 'lists', 'integrations/hooli'].map(
        (name) => `/manage/${name}`,
      ),
      '/account',
      '/help',
    ]) {
      await page.goto(address)
      await settle(page)
      for (const tab of await page.getByRole('tab').all()) await tab.click()
      expect(await page.getByText('an error of its own').count()).toBe(0)
    }
  })

  it('a year can be typed into From and To, and a field says what is wrong', async () => {
    const page = await open()
    await page.goto('/manage/audit?of=hooli')
    await page.getByLabel('Time range').selectOption('own')
    const asked: string[] = []
    page.on('request', (request) => {
      const from = new URL(request.url()).searchParams.get('from')
      if (from !== null) asked.push(from)
    })
    const [from, to] = [page.getByLabel('From (UTC)'), page.getByLabel('To (UTC)')]
    const inUrl = (name: string) => new URL(page.url()).searchParams.get(name)
    await from.focus()
    await page.keyboard.type('11252025')
    await until('it is in the URL', () => inUrl('from')?.startsWith('2025-11-25T'))
    expect(asked.filter((one) => !one.startsWith('20'))).toEqual([])
    // Without its month it is no date: the field says so, and the filter stays.
    const kept = inUrl('from')
    await from.focus()
    await page.keyboard.press('Backspace')
    await page.keyboard.press('Tab')
    await to.focus()
    await page.getByRole('alert').getByText('whole date').waitFor()
    expect(await from.getAttribute('aria-invalid')).toBe('true')
    expect(inUrl('from')).toBe(kept)
    await from.fill('2025-11-25T10:00')
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await to.fill('2025-11-24T10:00')
    await page.getByRole('alert').getByText('before').waitFor()
    await to.fill('0025-11-26T10:00')
    await to.blur()
    await page.getByRole('alert').getByText('year').waitFor()
    await to.fill('2025-11-26T10:00')
    await until('both are in the URL', () => inUrl('to') === '2025-11-26T10:00:00.000Z')
    expect(inUrl('from')).toBe('2025-11-25T10:00:00.000Z')
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  it('west of UTC a day stays that day in a chart', async () => {
    const page = await open({ timezoneId: 'America/Los_Angeles' })
    const sql =
      "select toDate('2026-11-24') + number as day, number as n, " +
      "toDateTime('2026-11-24 23:30:00', 'UTC') as at from numbers(2)"
    await page.goto(`/t/hooli/explore?${new URLSearchParams({ sql })}`)
    await page.getByRole('button', { name: /^Run/ }).click()
    await page.getByRole('tab', { name: 'Chart' }).click()
    await page.getByRole('button', { name: 'Table', exact: true }).click()
    for (const day of ['2026-11-24', '2026-11-25']) {
      await page.getByRole('cell', { name: day, exact: true }).waitFor()
    }
  })

  it('a clock that is hours ahead or behind changes no time range', async () => {
    await raise()
    await until('the alerts are raised', async () => {
      const path = '/tenants/hooli/alerts?limit=1'
      return (await admin<{ total: number }>(story.stack, 'GET', path)).total === raised
    })
    for (const shift of [3, -3]) {
      const page = await open()
      await page.clock.setSystemTime(Date.now() + shift * hourMs)
      const asked = page.waitForRequest(/\/alerts\?.*from=/)
      await page.goto('/t/hooli/alerts?span=1h')
      const from = new URL((await asked).url()).searchParams.get('from')!
      expect(Math.abs(Date.parse(from) - (Date.now() - hourMs))).toBeLessThan(120_000)
      await page.locator('[data-alert]').first().waitFor()
      expect(await page.locator('[data-alert]').count()).toBe(raised)
      await page
        .locator('[data-alert] time')
        .first()
        .getByText(/^(now|\d+ sec\. ago|[1-5] min\. ago)$/)
        .waitFor()
      const overview = page.waitForRequest(/\/overview\?.*from=/)
      await page.goto('/t/hooli/overview?span=1h')
      const since = new URL((await overview).url()).searchParams.get('from')!
      expect(Math.abs(Date.parse(since) - (Date.now() - hourMs))).toBeLessThan(120_000)
    }
  })
})
