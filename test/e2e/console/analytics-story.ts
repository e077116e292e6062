/** The part of the console's story about queries in SQL, events, and analytics pages. */
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { openPage } from '../../support/console/browser.ts'
import { admin, type Tenant } from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'

/** The results of earlier tests: a signed-in administrator and a tenant. */
export type AnalyticsStory = {
  running: TestStack
  browser: Browser
  page: Page
  tenant: Tenant
  email: string
  password: string
}

type Rows = { columns: { name: string }[]; rows: unknown[][] }

export function describeAnalytics(getStory: () => AnalyticsStory): void {
  const path = (rest: string) => `/tenants/${getStory().tenant.tenant_id}${rest}`
  const read = <T>(rest: string) => admin<T>(getStory().running.stack, 'GET', path(rest))
  const readPolicy = () => read<object>('/policy')
  const button = (name: string) => getStory().page.getByRole('button', { name, exact: true })
  const open = (rest: string) => getStory().page.goto(`/t/${getStory().tenant.tenant_id}${rest}`)

  describe('a query in SQL', () => {
    it('shows the rows of the API, is kept, and is in the audit log', async () => {
      const { running, page, email } = getStory()
      await open('/explore')
      await page.getByRole('button', { name: /^Run/ }).click()
      const rows = page.getByRole('region', { name: 'Rows of the query' }).getByRole('row')
      await rows.nth(1).waitFor()
      const { data } = await read<{
        data: { actor: string; action: string; after: { sql: string } }[]
      }>('/audit')
      const [entry] = data
      expect(entry).toMatchObject({ actor: email, action: 'sql.queried' })
      const { sql } = entry!.after
      const body = { sql }
      const answer = await admin<Rows>(running.stack, 'POST', path('/sql'), body)
      const texts = await rows.allInnerTexts()
      expect(texts.slice(1).map((text) => text.split('\t'))).toEqual(
        answer.rows.map((row) => row.map(String)),
      )
      await page.getByRole('tab', { name: 'Chart' }).click()
      await page.getByRole('list', { name: 'events by row' }).waitFor()
      await page.getByRole('tab', { name: 'History' }).click()
      await page.getByRole('button', { name: /^select platform/ }).waitFor()
      expect(await findViolations(page)).toEqual([])
    })

    it('is saved on the server under a name, shared, and is in the history of every browser', async () => {
      const { page, running } = getStory()
      await button('Saved queries').click()
      await page.getByRole('menuitem', { name: 'Save this query' }).click()
      await page.getByLabel('Name').fill('Versions')
      await page.getByLabel('Share it').check()
      await button('Save').click()
      await button('Versions').waitFor()
      const { data } = await read<{ data: object[] }>('/saved-views?kind=sql')
      const sql = expect.stringMatching(/^select platform/)
      expect(data).toMatchObject([{ name: 'Versions', shared: true, query: { sql } }])
      // What a former release kept here is of no use any more.
      await page.evaluate(() => localStorage.setItem('di.sql.acme', '[]'))
      const hidden = "concat('x', unhex('E280AE'), 'y')"
      const ids = `select ${hidden} as note, ${hidden} as device_id`
      await open(`/explore?${new URLSearchParams({ sql: ids, side: 'history' })}`)
      await page.getByRole('button', { name: /^select platform/ }).waitFor()
      expect(await page.evaluate(() => localStorage.getItem('di.sql.acme'))).toBeNull()
      await page.getByRole('button', { name: /^Run/ }).click()
      const cells = page.getByRole('region', { name: 'Rows of the query' }).getByRole('cell')
      await cells.first().waitFor()
      // A mark that turns the direction of what follows is shown, and an id is a link.
      expect(await cells.allInnerTexts()).toEqual(['x\\u{202e}y', 'x\\u{202e}y'])
      const link = cells.nth(1).getByRole('link')
      expect(await link.getAttribute('href')).toContain('/devices/x%E2%80%AEy')
      await cells.nth(1).getByRole('button', { name: 'Copy' }).waitFor()
      await button('Saved queries').click()
      await page.getByRole('menuitem', { name: 'Versions' }).click()
      await button('Versions').click()
      await page.getByRole('menuitem', { name: 'Remove this query' }).click()
      await page.getByText('Query Versions removed').waitFor()
      expect(await admin(running.stack, 'GET', path('/saved-views'))).toEqual({ data: [] })
      await page.getByRole('tab', { name: 'Examples' }).click()
    })

    it('comes from the cookbook with its parameters, and can be exported as CSV', async () => {
      const { page } = getStory()
      await page.getByRole('tab', { name: 'Examples' }).click()
      await page.getByRole('button', { name: /^Which devices form a farm/ }).click()
      await page.getByLabel('devices_min').fill('2')
      await page.getByLabel('findings_min').fill('1')
      await page.getByRole('button', { name: /^Run/ }).click()
      await button('Download CSV').waitFor()
      const download = async (name: string) => {
        const [file] = await Promise.all([page.waitForEvent('download'), button(name).click()])
        return readFileSync(await file.path(), 'utf8')
      }
      const csv = await download('Download CSV')
      expect(csv).toMatch(/^platform,sdk_version,findings,/)
      expect(csv).toContain('root.magisk_detected')
      expect(await download('Download for Excel')).toBe(`\uFEFF${csv}`)
    })

    it('with an error shows the engine’s message, and no request id for what a person typed', async () => {
      const { page } = getStory()
      await open('/explore?sql=select+no_such_column+from+events')
      await page.getByRole('button', { name: /^Run/ }).click()
      const alert = page.getByRole('alert')
      await alert.waitFor()
      const text = await alert.textContent()
      expect(text).toContain('no_such_column')
      expect(text).not.toContain('Request')
      expect(await findViolations(page)).toEqual([])
    })
  })

  describe('events', () => {
    it('are found by filters without SQL, and the same ones by the query that they open', async () => {
      const { page, tenant } = getStory()
      const filters = 'action=REVIEW,BLOCK&flag=ROOTED&signal=root.su_binary&min_score=1'
      const { data } = await read<{ data: { event_id: string }[] }>(`/events?${filters}`)
      const ids = data.map(({ event_id }) => event_id)
      expect(ids.length).toBeGreaterThan(0)
      await open(`/events?${filters}`)
      const table = page.getByRole('region', { name: 'Events' })
      await table.getByRole('link').first().waitFor()
      const links = `a[href^="/t/${tenant.tenant_id}/events/"]`
      const shown = await table
        .locator(links)
        .evaluateAll((all) => all.map((one) => one.getAttribute('title')))
      expect(shown).toEqual(ids.slice(0, shown.length))
      await button('Open as SQL').click()
      await page.getByRole('button', { name: /^Run/ }).click()
      const rows = page.getByRole('region', { name: 'Rows of the query' })
      await rows.locator(links).first().waitFor()
      // Whole, and each a link to its event.
      const texts = await rows.locator(links).allInnerTexts()
      expect(texts.toSorted()).toEqual(ids.toSorted())
    })

    it('are counted by a column, and a count opens the list that has so many', async () => {
      const { page, tenant } = getStory()
      const filters = 'action=REVIEW,BLOCK&signal=root.su_binary'
      await open(`/events?${filters}&by=flag&columns=event,sdk,risk`)
      const count = page.getByRole('link', { name: /^Rooted/ })
      const [, devices, events] = /(\d+) devices?(\d+) events?$/
        .exec((await count.textContent())!)!
        .map(Number)
      await count.click()
      await page.waitForURL('**flag=ROOTED**')
      const { data } = await read<{ data: { device_id: string }[] }>(
        `/events?${filters}&flag=ROOTED&limit=500`,
      )
      expect(events).toBeGreaterThan(0)
      expect([new Set(data.map((one) => one.device_id)).size, data.length]).toEqual([
        devices,
        events,
      ])
      const table = page.getByRole('region', { name: 'Events' })
      await table.getByRole('columnheader', { name: 'SDK version' }).waitFor()
      expect(await table.getByRole('columnheader').count()).toBe(3)
      expect(await findOverflow(page)).toBe(0)
      expect(await findViolations(page)).toEqual([])

      await button('Views').click()
      await page.getByRole('menuitem', { name: 'Save these filters as a view' }).click()
      await page.getByLabel('Name').fill('Rooted')
      await button('Save').click()
      await button('Rooted').waitFor()
      const { data: views } = await read<{ data: object[] }>('/saved-views?kind=events')
      const query = { flag: 'ROOTED', columns: 'event,sdk,risk', by: 'flag' }
      expect(views).toMatchObject([{ name: 'Rooted', shared: false, query }])
      await open('/events')
      await button('All of the last day').click()
      await page.getByRole('menuitem', { name: 'Rooted' }).click()
      await page.waitForURL('**flag=ROOTED**')

      await button('Export').click()
      const item = page.getByRole('menuitem', { name: 'Download CSV' })
      const [file] = await Promise.all([page.waitForEvent('download'), item.click()])
      expect(file.suggestedFilename()).toBe(`events-${tenant.tenant_id}.csv`)
      const [head, ...rows] = readFileSync(await file.path(), 'utf8')
        .trim()
        .split('\n')
      expect(head).toMatch(/^received_at,action,/)
      expect(rows).toHaveLength(data.length)
    })
  })

  describe('a viewer', () => {
    it('reads policies and signals, and can neither publish nor query', async () => {
      const { running, browser, tenant } = getStory()
      const { url } = await admin<{ url: string }>(
        running.stack,
        'POST',
        '/operators/invitations',
        { email: 'vera@example.com', role: 'viewer' },
      )
      const { page, faults } = await openPage(browser, { baseURL: running.stack.console })
      await page.goto(url)
      await page.getByLabel('Your name').fill('Vera Rubin')
      await page.getByLabel('Password').fill('six slow herons fish')
      await page.getByRole('button', { name: 'Create the account' }).click()
      await page.getByRole('link', { name: 'Policies' }).click()
      await page.getByText('in force', { exact: true }).waitFor()
      for (const name of ['Edit the policy', 'Edit from here', 'Roll back to this', 'Publish']) {
        expect([name, await page.getByRole('button', { name }).count()]).toEqual([name, 0])
      }
      expect(await page.getByRole('link', { name: 'Explore' }).count()).toBe(0)
      const before = await readPolicy()
      const asViewer = (method: string, rest: string, body: unknown) =>
        page.evaluate(
          async ([verb, address, text]) => {
            const headers = { 'content-type': 'application/json' }
            return (await fetch(address!, { method: verb!, headers, body: text! })).status
          },
          [method, `/admin/v1/tenants/${tenant.tenant_id}${rest}`, JSON.stringify(body)],
        )
      expect(await asViewer('PUT', '/policy', { preset: 'strict' })).toBe(403)
      expect(await asViewer('POST', '/sql', { sql: 'select 1' })).toBe(403)
      expect(await readPolicy()).toEqual(before)
      expect(faults).toEqual([])
      await page.context().close()
    })
  })

  describe('analytics pages', () => {
    it.each([
      ['/policies', 'Versions of the policy'],
      ['/signals', 'Signals'],
      ['/events', 'Events'],
      ['/signals?tab=unknown', 'SDKs send nothing'],
      ['/signals?tab=spikes', 'No signal has risen abruptly'],
      ['/fleet', 'SDK versions'],
      ['/reconciliation', 'Reconciliation by hour'],
    ])(
      '%s shows its content, has no fault that axe finds, and fits 320 px',
      async (rest, shown) => {
        const { page } = getStory()
        await open(rest)
        await page.getByRole('region', { name: shown }).or(page.getByText(shown)).first().waitFor()
        expect(await findViolations(page)).toEqual([])
        expect(await findOverflow(page)).toBe(0)
      },
    )

    it('draw charts in a browser whose language has no formatting rules', async () => {
      const { browser, page, running, tenant } = getStory()
      const storageState = await page.context().storageState()
      const baseURL = running.stack.console
      const { page: other, faults } = await openPage(browser, { baseURL, storageState })
      // As Chromium names it under LANG=C.
      await other.addInitScript(() =>
        Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true }),
      )
      await other.goto(`/t/${tenant.tenant_id}/fleet`)
      await other.locator('figure canvas').first().waitFor()
      expect(faults).toEqual([])
      await other.context().close()
    })

    it('are empty with a next step for a new tenant, and explain a failure', async () => {
      const { page } = getStory()
      await page.goto('/t/globex/fleet')
      await page.getByText('No telemetry in this time').waitFor()
      expect(await findViolations(page)).toEqual([])
      await page.goto('/t/globex/reconciliation')
      await page.getByText('No events in this time').waitFor()
      expect(await findViolations(page)).toEqual([])
      await page.route('**/fleet?*', (route) =>
        route.fulfill({
          status: 400,
          headers: { 'x-request-id': 'req_of-the-fleet' },
          json: { status: 400, code: 'invalid_query', detail: 'The time is too long.' },
        }),
      )
      await page.goto('/t/globex/fleet')
      const alert = page.getByRole('alert')
      await alert.getByText('The time is too long.').waitFor()
      // What was asked for is at fault: that has no request id.
      expect(await alert.textContent()).not.toContain('req_of-the-fleet')
      expect(await findViolations(page)).toEqual([])
      await page.unroute('**/fleet?*')
      await button('Try again').click()
      await page.getByText('No telemetry in this time').waitFor()
    })
  })
}
