/** The part of the console's story about policies, queries in SQL, and analytics pages. */
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { countAlerts, type ScoreCounts } from '#shared/core/outcomes/score-distribution.ts'
import { onlyWeights, suggestPolicy } from '#shared/core/outcomes/suggest/suggest-policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { openPage } from '../../support/console/browser.ts'
import { admin, ingest, type Tenant, toBody } from '../../support/http/tenant-client.ts'
import { makePlantedFleet } from '../../support/outcomes/planted-fleet.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** The results of earlier tests: a signed-in administrator and a tenant. */
export type AnalyticsStory = {
  running: TestStack
  browser: Browser
  page: Page
  tenant: Tenant
  email: string
  password: string
}

type Weights = { signals: Record<string, unknown> }
type Shown = {
  version: number
  policy_hash: string
  created_by: string
  document: { thresholds: { review: number }; categories: Record<string, Weights> }
}
type FleetScores = { counts: ScoreCounts; days: number }
type Rows = { columns: { name: string }[]; rows: unknown[][] }

const rooted = { root: { su_binary: true, magisk_detected: true } }
const devices = 6

/** The report of a suggestion for a fleet whose truth is known. */
function toReport() {
  const { table } = makePlantedFleet({ seed: 3, sessions: 40_000, labels: 1_600, draws: 1_500 })
  const options = { freed: onlyWeights, seed: 1 }
  const answer = suggestPolicy(presets.balanced, table, options)
  if (!('suggestion' in answer)) throw new Error(JSON.stringify(answer))
  const at = new Date().toISOString()
  return {
    tenant_id: 'acme',
    as_of: at,
    since: at,
    newer_since: at,
    active: { name: 'balanced', version: 1, policy_hash: '0' },
    sessions: 40_000,
    left_out: 3,
    refused: null,
    suggestion: answer.suggestion,
  }
}

export function describeAnalytics(getStory: () => AnalyticsStory): void {
  const path = (rest: string) => `/tenants/${getStory().tenant.tenant_id}${rest}`
  const read = <T>(rest: string) => admin<T>(getStory().running.stack, 'GET', path(rest))
  const readPolicy = () => read<Shown>('/policy')
  const button = (name: string) => getStory().page.getByRole('button', { name, exact: true })
  const open = (rest: string) => getStory().page.goto(`/t/${getStory().tenant.tenant_id}${rest}`)

  /** Confirms a dialog, and the password prompt if it comes. */
  async function confirmDialog(name: string): Promise<void> {
    const { page, password } = getStory()
    await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
    const done = page.getByText('is in force on')
    const prompt = page.getByRole('heading', { name: 'Confirm that it is you' })
    await done.or(prompt).first().waitFor()
    if (await prompt.isVisible()) {
      await page.getByLabel('Password').fill(password)
      await button('Confirm').click()
    }
    await done.first().waitFor()
  }

  async function setWeight(signal: string, points: string): Promise<void> {
    const { page } = getStory()
    await page.getByText('signals weigh, cap').first().click()
    await page.getByLabel(`Points of ${signal}`, { exact: true }).fill(points)
    await page.getByText('valid', { exact: true }).waitFor()
  }

  describe('a policy', () => {
    it('is published after its backtest, and both pages match the API', async () => {
      const { running, page, tenant, email } = getStory()
      for (let at = 0; at < devices; at += 1) {
        const body = toBody(tenant.tenant_id, {
          device: `rooted-${at}`,
          session: `rooted-${at}`,
          signals: rooted,
        })
        expect((await ingest(running.stack, tenant.hmac_secret, body)).status).toBe(200)
      }
      const { document, version } = await readPolicy()
      const root = { ...document.categories.root!.signals, magisk_detected: 0 }
      await until('the events are stored', async () => {
        const { totals } = await read<{ totals: { devices: number } }>('/fleet')
        return totals.devices >= devices
      })

      await open('/policies')
      await button('Edit the policy').click()
      await setWeight('root.magisk_detected', '0')
      expect(await findViolations(page)).toEqual([])
      await button('Run the backtest').click()
      await page.getByRole('region', { name: 'Sessions that moved most' }).waitFor()
      expect(await findViolations(page)).toEqual([])
      const moved = page.getByRole('region', { name: 'Sessions that moved most' })
      expect(await moved.getByRole('row').count()).toBe(devices + 1)

      await button('Publish').click()
      expect(await page.getByRole('dialog').textContent()).toContain('The backtest of this draft')
      await confirmDialog('Publish')
      await page.getByText('in force', { exact: true }).waitFor()
      const after = await readPolicy()
      expect(after).toMatchObject({ version: version + 1, created_by: email })
      expect(after.document.categories.root!.signals).toEqual(root)
      const row = page.getByRole('row').filter({ hasText: 'in force' })
      expect(await row.getByRole('cell').first().textContent()).toBe(String(version + 1))
    })

    it('that another operator changed meanwhile is shown and not overwritten', async () => {
      const { running, page } = getStory()
      await button('Edit the policy').click()
      await page.getByLabel('Review from').fill('35')
      await page.getByText('valid', { exact: true }).waitFor()
      const { document } = await readPolicy()
      const other = { ...document, name: 'by another person' }
      await admin(running.stack, 'PUT', path('/policy'), other)
      const theirs = await readPolicy()
      await button('Publish').click()
      await page.getByLabel('Publish this draft without a backtest').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click()
      await page.getByText('Nothing was overwritten').waitFor()
      await button('Compare').click()
      await page.getByText(`Version ${theirs.version} is in force`).waitFor()
      expect(await readPolicy()).toEqual(theirs)
      // The draft is still there, and leaving the page shows a warning.
      expect(await page.getByLabel('Review from').inputValue()).toBe('35')
      const questions: string[] = []
      page.on('dialog', (dialog) => {
        questions.push(dialog.message())
        void (questions.length === 1 ? dialog.dismiss() : dialog.accept())
      })
      await page.getByRole('link', { name: 'Fleet' }).click()
      await until('the page asks', () => questions.length === 1)
      expect(await page.getByLabel('Review from').inputValue()).toBe('35')
      await page.getByRole('link', { name: 'Fleet' }).click()
      await page.getByRole('heading', { name: 'Fleet', exact: true }).waitFor()
      expect(questions[0]).toBe('Leave this page and lose the draft?')
      page.removeAllListeners('dialog')
    })

    it('is rolled back to an older version, which is published again', async () => {
      const { page } = getStory()
      const before = await readPolicy()
      await open('/policies?version=1')
      await button('Roll back to this').click()
      await confirmDialog('Roll back')
      const after = await readPolicy()
      const first = await read<Shown>('/policy/versions/1')
      expect(after.version).toBe(before.version + 1)
      expect(after.policy_hash).toBe(first.policy_hash)
      await page.getByText('in force', { exact: true }).waitFor()
    })

    it('has thresholds that keys and the pointer move, with what they mean', async () => {
      const { page } = getStory()
      await open('/policies')
      await button('Edit the policy').click()
      const review = page.getByRole('slider', { name: 'REVIEW threshold' })
      await review.waitFor()
      const from = Number(await page.getByLabel('Review from').inputValue())
      const scores = await read<FleetScores>('/policy/scores?days=30')
      const alertsADay = (at: number) => (countAlerts(scores.counts, at) / scores.days).toFixed(1)
      const draft = page.getByRole('row', { name: /^REVIEW or BLOCK, draft/ })
      const readDraft = async () => (await draft.getByRole('cell').allInnerTexts()).slice(0, 2)
      expect(countAlerts(scores.counts, from)).toBeGreaterThanOrEqual(devices)
      expect((await readDraft())[0]).toBe(String(from))
      await review.press('End')
      await review.press('ArrowLeft')
      expect(await page.getByLabel('Review from').inputValue()).toBe('99')
      // It takes BLOCK along.
      expect(await page.getByLabel('Block from').inputValue()).toBe('100')
      expect(await readDraft()).toEqual(['99', alertsADay(99)])
      const { x, y, width, height } = (await review.boundingBox())!
      await page.mouse.move(x + width / 2, y + height - 4)
      await page.mouse.down()
      await page.mouse.move(x - 200, y + height - 4, { steps: 3 })
      await page.mouse.up()
      const dragged = Number(await page.getByLabel('Review from').inputValue())
      expect(dragged).toBeGreaterThan(1)
      expect(dragged).toBeLessThan(99)
      expect((await readDraft())[0]).toBe(String(dragged))
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      page.once('dialog', (dialog) => void dialog.accept())
      await button('Discard').click()
    })

    it('is suggested from outcomes into a draft only, or the page says what is missing', async () => {
      const { page } = getStory()
      const before = await readPolicy()
      await open('/policies?tab=suggest')
      await button('Suggest a policy').click()
      await page.getByText('fraud sessions: 0, at least 100 are needed').waitFor()
      expect(await findViolations(page)).toEqual([])
      // A real report of a fleet with labels: it takes 20,000 sessions, which no test here sends.
      const report = toReport()
      const { policy, weights } = report.suggestion
      await page.route('**/policy/suggestion?*', (route) =>
        route.fulfill({
          headers: { 'content-type': 'application/x-ndjson' },
          body: `${JSON.stringify({ progress: { slices_done: 1, slices: 1 } })}\n${JSON.stringify({ report })}\n`,
        }),
      )
      await button('Suggest again').click()
      await button('Take as draft').waitFor()
      await page.unroute('**/policy/suggestion?*')
      const [first] = weights
      const row = page.getByRole('row').filter({ hasText: first!.feature }).first()
      const cells = await row.getByRole('cell').allInnerTexts()
      expect(cells.slice(1, 3)).toEqual([String(first!.before), String(first!.after)])
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      await button('Take as draft').click()
      await page.getByText('valid', { exact: true }).waitFor()
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe(policy.name)
      expect(await readPolicy()).toEqual(before)
      page.once('dialog', (dialog) => void dialog.accept())
      await button('Discard').click()
    })

    it('gets a suppression from its URL, into a draft only', async () => {
      const { page } = getStory()
      const before = await readPolicy()
      await open('/policies?tab=edit&suppress=root.su_binary&versions=4.3.0&reason=bad+release')
      await page.getByText('valid', { exact: true }).waitFor()
      expect(await page.getByLabel('SDK versions').inputValue()).toBe('4.3.0')
      await page.getByRole('tab', { name: 'Changes (1)' }).waitFor()
      expect(await readPolicy()).toEqual(before)
      page.once('dialog', (dialog) => void dialog.accept())
      await button('Discard').click()
      await page.getByRole('tab', { name: 'Versions', selected: true }).waitFor()
    })
  })

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
      const links = table.locator(`a[href^="/t/${tenant.tenant_id}/events/"]`)
      const shown = await links.evaluateAll((all) => all.map((one) => one.getAttribute('title')))
      expect(shown).toEqual(ids.slice(0, shown.length))
      await button('Open as SQL').click()
      await page.getByRole('button', { name: /^Run/ }).click()
      const rows = page.getByRole('region', { name: 'Rows of the query' }).getByRole('row')
      await rows.nth(1).waitFor()
      const texts = (await rows.allInnerTexts()).slice(1)
      expect(texts.map((text) => text.split('\t').at(-1)).toSorted()).toEqual(ids.toSorted())
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
      await button('Copy req_of-the-fleet').waitFor()
      expect(await findViolations(page)).toEqual([])
      await page.unroute('**/fleet?*')
    })
  })
}
