/** Policies: edited, backtested, published, approved by a second person, rolled back. */
import { describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { confirmAs } from '../../support/console/controls.ts'
import { rootedCount, sendLabelled } from '../../support/console/labelled-sessions.ts'
import { makeOperator } from '../../support/console/operators.ts'
import { tellStory } from '../../support/console/story.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { until } from '../../support/process/until.ts'

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

const story = tellStory('policies')
const { button, expectNoFault, read } = story
const path = (rest: string) => `/tenants/policies${rest}`
const readPolicy = () => read<Shown>('/policy')
const open = (rest: string) => story.goto(rest.replace(/^\//, ''))

/** Confirms a dialog, and the password prompt if it comes. */
async function confirmDialog(name: string): Promise<void> {
  await story.inDialog(name).click()
  await confirmAs(story.page, story.password, story.page.getByText('is in force on'))
}

async function setWeight(signal: string, points: string): Promise<void> {
  const { page } = story
  await page.getByText('signals weigh, cap').first().click()
  await page.getByLabel(`Points of ${signal}`, { exact: true }).fill(points)
  await page.getByText('valid', { exact: true }).waitFor()
}

describe('a policy', () => {
  it('is published after its backtest, and both pages match the API', async () => {
    const { page, email } = story
    await sendLabelled(story)
    const { document, version } = await readPolicy()
    const root = { ...document.categories.root!.signals, magisk_detected: 0 }

    await open('/policies')
    await button('Edit the policy').click()
    await setWeight('root.magisk_detected', '0')
    await button('Run the backtest').click()
    await page.getByRole('region', { name: 'Sessions that moved most' }).waitFor()
    expect(await findViolations(page)).toEqual([])
    const moved = page.getByRole('region', { name: 'Sessions that moved most' })
    expect(await moved.getByRole('row').count()).toBe(rootedCount + 1)
    const known = page.getByRole('table', { name: 'Fraud caught, honest users harmed' })
    expect((await known.getByRole('row').allInnerTexts()).map((row) => row.split('\t'))).toEqual([
      ['Labelled sessions', 'As decided', 'This draft'],
      ['Fraud caught', '4 of 10: 40 % (17 to 69)', '2 of 10: 20 % (5.7 to 51)'],
      ['Fraud missed', '6', '8'],
      ['Honest sessions harmed', '2 of 10: 20 % (5.7 to 51)', '1 of 10: 10 % (1.8 to 40)'],
      ['Honest users harmed', '1', '1'],
      [
        'Money caught, EUR',
        ...['400.40 of 6,400.40, 6,000.00 missed', '200.20 of 6,400.40, 6,200.20 missed'],
      ],
    ])

    await button('Publish').click()
    const lines = await page.getByRole('dialog').getByRole('paragraph').allInnerTexts()
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^The backtest of this draft over \d+ events: 0 sessions get an/),
        '2 known fraud sessions would no longer be caught.',
        '1 honest session would no longer be harmed.',
      ]),
    )
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
    const { stack, page } = story
    await button('Edit the policy').click()
    await page.getByLabel('Review from').fill('35')
    await page.getByText('valid', { exact: true }).waitFor()
    await page.getByText('Saved', { exact: true }).waitFor()
    const { document } = await readPolicy()
    const other = { ...document, name: 'by another person' }
    await admin(stack, 'PUT', path('/policy'), other)
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
    await admin(stack, 'PUT', of, {
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

  it('is judged by outcomes: what was caught and missed, whom it harmed, and the money', async () => {
    const { page } = story
    await open('/signals?tab=outcomes')
    const table = page.getByRole('table', { name: 'By flag' })
    await table.getByRole('cell', { name: 'ROOTED', exact: true }).waitFor()
    const facts = (await page.locator('main dl').allInnerTexts()).join('\n')
    for (const text of [
      '4 of 10 sessions: 40 % (17 to 69)',
      '6 sessions',
      '1 user, in 2 of 10 honest sessions: 20 % (5.7 to 51)',
      '6,400.40: 400.40 caught, 6,000.00 missed',
      '20 count; 0 of them name no known session',
    ]) {
      expect(facts.split('\n')).toContain(text)
    }
    const row = table.getByRole('row', { name: /^ROOTED / })
    expect(await row.getByRole('cell').allInnerTexts()).toEqual([
      ...['ROOTED', '4', '40 % (17 to 69)', '2', '20 % (5.7 to 51)', '400.40 EUR'],
    ])
    await expectNoFault()
  })

  it('leads to scores that say where they stand in the fleet, on device and alert', async () => {
    const { page } = story
    const { data } = await read<{ data: { alert_id: string }[] }>('/alerts?device_id=rooted-0')
    // Sessions count from the hour after they began, which no test here waits for.
    for (const place of ['devices/rooted-0', `alerts/${data[0]!.alert_id}`]) {
      const isRecord = ({ pathname }: URL) =>
        pathname.startsWith('/admin/v1/') && pathname.endsWith(`/${place}`)
      await page.route(isRecord, async (route) => {
        const answer = await route.fetch()
        const json = (await answer.json()) as { device?: object }
        Object.assign(json.device ?? json, { risk_percentile: 99.25 })
        await route.fulfill({ response: answer, json })
      })
      await open(`/${place}`)
      await page.getByText('higher than 99.3 % of your fleet').first().waitFor()
      expect(await findOverflow(page)).toBe(0)
      await page.unroute(isRecord)
    }
  })

  it('shows its rules, floors and groups in the form, as the JSON has them', async () => {
    const { page } = story
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

  it('is rolled back to an older version, which is published again', async () => {
    const { page } = story
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

  it('is published once another administrator approves, where four eyes are wanted', async () => {
    const { page } = story
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

    const approver = makeOperator('Approver')
    const other = await story.join(approver)

    await other.goto('/t/policies/overview')
    await other.getByRole('link', { name: /^Proposals ?1 to approve$/ }).click()
    await other.getByRole('button', { name: 'in place of version' }).click()
    await other.getByText('one point more').waitFor()
    const changes = other.getByRole('table', { name: 'Changes' })
    expect(await changes.getByRole('cell').allInnerTexts()).toEqual([
      ...['thresholds.review', String(before.document.thresholds.review), '41'],
    ])
    expect(await findViolations(other)).toEqual([])
    expect(await findOverflow(other)).toBe(0)
    await other.getByRole('button', { name: 'Approve', exact: true }).click()
    const dialog = other.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await confirmAs(other, approver.password, other.getByText('Approved, and done.'))

    expect(await readPolicy()).toMatchObject({
      version: before.version + 1,
      reason: 'one point more',
      created_by: story.email,
      approved_by: approver.email,
    })
    await other.context().close()
  })
})
