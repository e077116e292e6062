/** The part of the console's story about policies: drafts, four eyes, suggestions. */
import { describe, expect, it } from 'vitest'
import { countAlerts, type ScoreCounts } from '#shared/core/outcomes/score-distribution.ts'
import { onlyWeights, suggestPolicy } from '#shared/core/outcomes/suggest/suggest-policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { openPage } from '../../support/console/browser.ts'
import { admin, ingest, toBody } from '../../support/http/tenant-client.ts'
import { makePlantedFleet } from '../../support/outcomes/planted-fleet.ts'
import { until } from '../../support/process/until.ts'
import type { AnalyticsStory } from './analytics-story.ts'

type Weights = { signals: Record<string, unknown> }
type Shown = {
  version: number
  policy_hash: string
  created_by: string
  document: {
    name: string
    thresholds: { review: number }
    categories: Record<string, Weights>
    velocity: { metric: string; weight: number }[]
    floors: { signals: string[] }[]
  }
}
type FleetScores = { counts: ScoreCounts; days: number }

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

export function describePolicies(getStory: () => AnalyticsStory): void {
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
      await page.getByLabel('Reason').fill('hidden by a module of the owner')
      expect(await findViolations(page)).toEqual([])
      await confirmDialog('Publish')
      await page.getByText('in force', { exact: true }).waitFor()
      const after = await readPolicy()
      expect(after).toMatchObject({
        version: version + 1,
        created_by: email,
        reason: 'hidden by a module of the owner',
      })
      expect(after.document.categories.root!.signals).toEqual(root)
      const row = page.getByRole('row').filter({ hasText: 'in force' })
      expect(await row.getByRole('cell').first().textContent()).toBe(String(version + 1))
    })

    it('that another operator changed meanwhile is shown and not overwritten', async () => {
      const { running, page } = getStory()
      await button('Edit the policy').click()
      await page.getByLabel('Review from').fill('35')
      await page.getByText('valid', { exact: true }).waitFor()
      await page.getByText('Saved', { exact: true }).waitFor()
      const { document } = await readPolicy()
      const other = { ...document, name: 'by another person' }
      await admin(running.stack, 'PUT', path('/policy'), other)
      const theirs = await readPolicy()
      await button('Publish').click()
      await page.getByLabel('Publish this draft without a backtest').check()
      await page.getByLabel('Reason').fill('fewer reviews')
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click()
      await page.getByText('Nothing was overwritten').waitFor()
      await button('Compare').click()
      await page.getByText(`Version ${theirs.version} is in force`).waitFor()
      expect(await readPolicy()).toEqual(theirs)
      // The server keeps the draft: it survives a reload, and is in the list for others.
      await page.reload()
      await page.getByText(`Version ${theirs.version} is in force`).waitFor()
      expect(await page.getByLabel('Review from').inputValue()).toBe('35')
      await button('All drafts').click()
      const drafts = page.getByRole('table', { name: 'Drafts of the policy' })
      await drafts.getByRole('button', { name: document.name }).click()
      await page.getByLabel('Review from').waitFor()
      // Somebody else changes it meanwhile: nothing is overwritten without a word.
      const { data } = await read<{ data: { draft_id: string; revision: number }[] }>('/drafts')
      const of = path(`/drafts/${data[0]!.draft_id}`)
      await admin(running.stack, 'PUT', of, {
        text: JSON.stringify(document),
        base_version: theirs.version,
        revision: data[0]!.revision,
      })
      await page.getByLabel('Review from').fill('36')
      await page.getByText('Somebody else has changed this draft').waitFor()
      expect(await findViolations(page)).toEqual([])
      await button('Take theirs').click()
      await page.getByText('Saved', { exact: true }).waitFor()
      const { review } = document.thresholds
      expect(await page.getByLabel('Review from').inputValue()).toBe(String(review))
      page.once('dialog', (dialog) => void dialog.accept())
      await button('Discard').click()
      await button('Edit the policy').waitFor()
      expect((await read<{ data: unknown[] }>('/drafts')).data).toEqual([])
    })

    it('shows its rules, floors and groups in the form, as the JSON has them', async () => {
      const { page } = getStory()
      await open('/policies?weight=velocity.users_per_device')
      const points = page.getByRole('region', { name: 'Velocity rules' })
      await points.waitFor()
      const isFocused = () =>
        page.evaluate<boolean>(`document.activeElement.hasAttribute('data-weight')`)
      await until('the rule has the focus', isFocused)
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.type('777')
      await page.getByText('1 error').waitFor()
      const wrong = points.getByRole('alert')
      // The field says it once it is left.
      expect(await wrong.count()).toBe(0)
      await page.keyboard.press('Tab')
      await wrong.waitFor()
      await page.keyboard.press('Shift+Tab')
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.type('33')
      await button('Add a floor').click()
      const count = (await readPolicy()).document.floors.length + 1
      await page.getByLabel(`Signals of floor ${count}`).fill('root.su_binary, root.test_keys')
      await page.getByText('valid', { exact: true }).waitFor()
      await page.getByText('Saved', { exact: true }).waitFor()
      expect(await findViolations(page)).toEqual([])
      const { data } = await read<{ data: { draft_id: string }[] }>('/drafts')
      const draft = await read<{ text: string }>(`/drafts/${data[0]!.draft_id}`)
      const written = JSON.parse(draft.text) as Shown['document']
      const rule = written.velocity.find(({ metric }) => metric === 'users_per_device')
      expect(rule?.weight).toBe(33)
      expect(written.floors.at(-1)?.signals).toEqual(['root.su_binary', 'root.test_keys'])
      // The link opens the draft that is there, and no other.
      await open('/policies?weight=root.su_binary')
      await until('the weight has the focus', () =>
        page.evaluate<boolean>(
          `document.activeElement.getAttribute('aria-label') === 'Points of root.su_binary'`,
        ),
      )
      expect((await read<{ data: unknown[] }>('/drafts')).data.length).toBe(1)
      page.once('dialog', (dialog) => void dialog.accept())
      await button('Discard').click()
      await button('Edit the policy').waitFor()
    })

    it('is published once another administrator approves, where four eyes are wanted', async () => {
      const { running, browser, page, tenant } = getStory()
      await open('/proposals')
      await button('Change').click()
      await page.getByLabel('Ask a second administrator').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByText('Four eyes are on.').waitFor()
      const before = await readPolicy()
      await open('/policies')
      await button('Edit the policy').click()
      await page.getByLabel('Review from').fill('41')
      await page.getByText('valid', { exact: true }).waitFor()
      await page.getByText('Saved', { exact: true }).waitFor()
      await button('Publish').click()
      await page.getByLabel('Publish this draft without a backtest').check()
      await page.getByLabel('Reason').fill('one point more')
      await page.getByRole('dialog').getByRole('button', { name: 'Propose' }).click()
      await page.getByText('Another administrator must approve it.').waitFor()
      expect(await button('Approve').count()).toBe(0)
      expect(await findViolations(page)).toEqual([])
      expect((await readPolicy()).version).toBe(before.version)

      const { url } = await admin<{ url: string }>(
        running.stack,
        'POST',
        '/operators/invitations',
        { email: 'approver@example.com', role: 'admin' },
      )
      const other = await openPage(browser, { baseURL: running.stack.console })
      await other.page.goto(url)
      await other.page.getByLabel('Your name').fill('Sofia Second')
      await other.page.getByLabel('Password').fill('nine calm otters read')
      await other.page.getByRole('button', { name: 'Create the account' }).click()
      await other.page.getByRole('button', { name: 'Account of Sofia Second' }).waitFor()
      await other.page.goto(`/t/${tenant.tenant_id}/overview`)
      await other.page.getByRole('link', { name: /^Proposals ?1 to approve$/ }).click()
      await other.page.getByRole('button', { name: 'in place of version' }).click()
      await other.page.getByText('one point more').waitFor()
      const changes = other.page.getByRole('table', { name: 'Changes' })
      expect(await changes.getByRole('cell').allInnerTexts()).toEqual([
        ...['thresholds.review', String(before.document.thresholds.review), '41'],
      ])
      expect(await findViolations(other.page)).toEqual([])
      expect(await findOverflow(other.page)).toBe(0)
      await other.page.getByRole('button', { name: 'Approve' }).click()
      const dialog = other.page.getByRole('dialog')
      await dialog.getByRole('button', { name: 'Approve' }).click()
      const prompt = other.page.getByRole('heading', { name: 'Confirm that it is you' })
      const done = other.page.getByText('Approved, and done.').first()
      await done.or(prompt).first().waitFor()
      if (await prompt.isVisible()) {
        await other.page.getByLabel('Password').fill('nine calm otters read')
        await other.page.getByRole('button', { name: 'Confirm' }).click()
      }
      await done.waitFor()
      expect(await readPolicy()).toMatchObject({
        version: before.version + 1,
        reason: 'one point more',
        created_by: getStory().email,
        approved_by: 'approver@example.com',
      })
      expect(other.faults).toEqual([])
      await other.page.context().close()
      // Off again for the rest of the story, by the bearer of the token.
      const body = { kind: 'four_eyes', setting: { enabled: false }, reason: 'the story goes on' }
      const asked = await admin<{ proposal_id: string }>(
        running.stack,
        'POST',
        path('/proposals'),
        body,
      )
      await page.goto(`/t/${tenant.tenant_id}/proposals?proposal=${asked.proposal_id}`)
      await button('Approve').click()
      await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
      await page.getByText('Approved, and done.').first().waitFor()
    })

    it('is rolled back to an older version, which is published again', async () => {
      const { page } = getStory()
      const before = await readPolicy()
      await open('/policies?version=1')
      await button('Roll back to this').click()
      await page.getByLabel('Reason').fill('as before')
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
      const chosen = page.getByRole('list', { name: 'SDK versions chosen' })
      await chosen.getByText('4.3.0', { exact: true }).waitFor()
      await page.getByRole('tab', { name: 'Changes (1)' }).waitFor()
      // Nothing is wrong with a new one at first sight, nor while it is filled in.
      await button('Add a suppression').click()
      await page.getByText('not complete', { exact: true }).waitFor()
      const faults = page
        .getByRole('list', { name: 'What is not valid' })
        .or(page.getByRole('alert'))
      expect(await faults.count()).toBe(0)
      const added = page.getByRole('group', { name: 'Suppression 2' })
      await added.getByRole('button', { name: 'Signals', exact: true }).click()
      await page.getByRole('combobox', { name: 'Find: Signals' }).fill('code hooking')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Escape')
      await added.getByText('debugger.hooking_detected').waitFor()
      expect(await faults.count()).toBe(0)
      await page.getByLabel('What this draft is for').focus()
      await added.getByRole('alert').waitFor()
      await faults.first().waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      expect(await readPolicy()).toEqual(before)
      page.once('dialog', (dialog) => void dialog.accept())
      await button('Discard').click()
      await page.getByRole('tab', { name: 'Versions', selected: true }).waitFor()
    })
  })
}
