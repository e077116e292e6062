/**
 * What holds for every page: axe finds no fault in either theme, it fits a narrow screen, keeps its
 * parts in place, has whole rings, is found by name, and is dark where that is wanted.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { settle } from '../../support/console/browser.ts'
import { accountOn } from '../../support/console/operators.ts'
import { findCutRings, watchShifts } from '../../support/console/page-frame.ts'
import { listPlaces } from '../../support/console/screenshots/places.ts'
import { tellStory } from '../../support/console/story.ts'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import { until } from '../../support/process/until.ts'

const story = tellStory('pages')
const { button, expectNoFault, heading } = story
const identifiers = { media_drm_id: '8f14e45fceea167a5a36dedd4bea2543' }
const hooked = { debugger: { frida_detected: true, native_hooks: true }, root: { su_binary: true } }

beforeAll(async () => {
  await createTenant(story.stack, 'bare')
  for (const device of ['one', 'two', 'three']) {
    const extra = { device: { brand: 'Google', model: 'Pixel 8', identifiers } }
    await story.send({ device, session: device, user: 'ada', signals: hooked, extra })
  }
  await until('each has an alert of a phone', async () => {
    type Alerts = { data: { entity: { phone?: object } }[] }
    const { data } = await story.read<Alerts>('/alerts?limit=10')
    return data.length === 3 && data.every(({ entity }) => entity.phone !== undefined)
  })
  await until('all of it is stored', () => story.read('/users/ada'))
})

describe('every page', () => {
  it('has no fault that axe finds in light and dark, and fits 320 px', async () => {
    const { page } = story
    const more = ['signals?tab=unknown', 'signals?tab=spikes', 'signals?tab=outcomes']
    const places = await listPlaces(story.stack, 'pages', 'bare')
    const faults: string[] = []
    for (const address of [
      ...places.map((place) => place.address),
      ...more.map((path) => `/t/pages/${path}`),
    ]) {
      await page.goto(address)
      await settle(page)
      const found = await findViolations(page)
      const over = await findOverflow(page)
      faults.push(...found.map((text) => `${address}: ${text}`))
      if (over > 0) faults.push(`${address}: ${over} px too wide`)
    }
    expect(faults).toEqual([])
  })

  it('keeps its panels in place, has whole rings, and gives the focus back after a dialog', async () => {
    const { page } = story
    await page.addInitScript(watchShifts)
    const size = page.viewportSize()!
    // As tall as that every panel is in view.
    await page.setViewportSize({ width: 1_280, height: 2_160 })
    await page.goto('/manage/integrations/pages')
    await page.getByText('not required', { exact: true }).waitFor()
    await settle(page)
    expect(await page.evaluate('shift')).toBeLessThanOrEqual(0.02)
    expect(await findCutRings(page)).toEqual([])
    const opening = [/^Account of/, /^Search/, /^Switch tenant/, /^Rotate keys$/, /^Set the rates$/]
    for (const name of [
      ...opening,
      /^Suspend$/,
      /^Create a key$/,
      /^Add an app$/,
      /^Require it$/,
    ]) {
      const opener = page.getByRole('button', { name })
      await opener.focus()
      await page.keyboard.press('Enter')
      const opened = page.getByRole('dialog').or(page.getByRole('menu'))
      await opened.waitFor()
      expect([name, await findCutRings(page)]).toEqual([name, []])
      await page.keyboard.press('Escape')
      await opened.waitFor({ state: 'detached' })
      await until(`${name} has the focus again`, () =>
        opener.evaluate((element) => element === element.ownerDocument.activeElement),
      )
    }
    await page.setViewportSize(size)
  })

  it('shows at most 80 rows of a long list at once', async () => {
    const { page } = story
    const { data } = await admin<{ data: object[] }>(story.stack, 'GET', '/tenants')
    const many = Array.from({ length: 5_000 }, (_, at) => ({ ...data[0], tenant_id: `t-${at}` }))
    await page.route('**/admin/v1/tenants?*', (route) =>
      route.fulfill({ json: { data: many, total: many.length, limit: 1000, next_cursor: null } }),
    )
    await page.setViewportSize({ width: 1_280, height: 2_160 })
    await page.goto('/manage/tenants')
    await page.getByRole('link', { name: 't-0', exact: true }).waitFor()
    const rows = () => page.locator('main tr').count()
    expect(await rows()).toBeLessThanOrEqual(80)
    await page.getByRole('region', { name: 'Tenants' }).evaluate((region) => {
      region.scrollTop = region.scrollHeight
    })
    await page.getByRole('link', { name: 't-4999', exact: true }).waitFor()
    expect(await rows()).toBeLessThanOrEqual(80)
    await page.unroute('**/admin/v1/tenants?*')
    await page.setViewportSize({ width: 1_280, height: 720 })
  })

  it('that fails shows the request id and can be reloaded', async () => {
    const { page, email } = story
    await page.route('**/admin/v1/operators', (route) =>
      route.fulfill({
        status: 500,
        headers: { 'x-request-id': 'req_of-this-test' },
        json: { status: 500, code: 'internal_error', detail: 'Something went wrong.' },
      }),
    )
    await page.goto('/manage/operators')
    await page.getByText('This could not be loaded').waitFor()
    await page.getByRole('button', { name: 'Copy req_of-this-test' }).waitFor()
    await expectNoFault()
    // An outage is read again by itself: the button is there only while it lasts.
    await button('Try again').click()
    await page.unroute('**/admin/v1/operators')
    await page.getByRole('cell', { name: email }).first().waitFor()
  })

  it('is dark when the system or the operator wants it, from the first paint on', async () => {
    const { page, name } = story
    const account = () => accountOn(page, name)
    const background = () =>
      page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
    const light = await background()
    await page.emulateMedia({ colorScheme: 'dark' })
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.emulateMedia({ colorScheme: 'light' })
    await account().click()
    await page.getByRole('menuitemradio', { name: 'Dark' }).click()
    expect(await background()).toBe(dark)
    await page.reload({ waitUntil: 'commit' })
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
    await account().click()
    await page.getByRole('menuitemradio', { name: 'As the system' }).click()
    expect(await background()).toBe(light)
  })

  it('is found by its name from the keyboard', async () => {
    const { page } = story
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill('audit')
    await page.keyboard.press('Enter')
    await heading('Audit').waitFor()
    await page.keyboard.press('Control+k')
    expect(await findViolations(page)).toEqual([])
    await page.keyboard.press('Escape')
  })
})

describe('of a fleet', () => {
  it('draw charts in a browser whose language has no formatting rules', async () => {
    const { page } = story
    const storageState = await page.context().storageState()
    const other = await story.open({ storageState })
    // As Chromium names it under LANG=C.
    await other.addInitScript(() =>
      Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true }),
    )
    await other.goto(`/t/pages/fleet`)
    await other.locator('figure canvas').first().waitFor()
    await other.context().close()
  })

  it('are empty with a next step for a new tenant, and explain a failure', async () => {
    const { page } = story
    await page.goto('/t/bare/fleet')
    await page.getByText('No telemetry in this time').waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.goto('/t/bare/reconciliation')
    await page.getByText('No events in this time').waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.route('**/fleet?*', (route) =>
      route.fulfill({
        status: 400,
        headers: { 'x-request-id': 'req_of-the-fleet' },
        json: { status: 400, code: 'invalid_query', detail: 'The time is too long.' },
      }),
    )
    await page.goto('/t/bare/fleet')
    const alert = page.getByRole('alert')
    await alert.getByText('The time is too long.').waitFor()
    // What was asked for is at fault: that has no request id.
    expect(await alert.textContent()).not.toContain('req_of-the-fleet')
    await page.unroute('**/fleet?*')
    await button('Try again').click()
    await page.getByText('No telemetry in this time').waitFor()
  })
})
