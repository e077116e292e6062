/** Drafts of a policy: thresholds by keys and pointer, suggestions from outcomes, suppressions. */
import { beforeAll, describe, expect, it } from 'vitest'
import { countAlerts, type ScoreCounts } from '#shared/core/outcomes/score-distribution.ts'
import { onlyWeights, suggestPolicy } from '#shared/core/outcomes/suggest/suggest-policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { findViolations } from '../../support/console/accessibility.ts'
import { rootedCount, sendLabelled } from '../../support/console/labelled-sessions.ts'
import { tellStory } from '../../support/console/story.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { makePlantedFleet } from '../../support/outcomes/planted-fleet.ts'

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
type Category = { groups?: { signals: string[] }[] }
type FleetScores = { counts: ScoreCounts; days: number }

/** A rule of two signals that are in no group. */
const pair = ['developer_mode', 'adb_enabled']

/** The report of a suggestion for a fleet whose truth is known. */
function toReport() {
  const { table } = makePlantedFleet({ seed: 3, sessions: 40_000, labels: 1_600, draws: 1_500 })
  const options = { freed: onlyWeights, seed: 1 }
  const answer = suggestPolicy(presets.balanced, table, options)
  if (!('suggestion' in answer)) throw new Error(JSON.stringify(answer))
  const at = new Date().toISOString()
  const alone = answer.suggestion.rules.find(({ floor }) => floor !== null)!
  return {
    tenant_id: 'drafts',
    as_of: at,
    since: at,
    newer_since: at,
    active: { name: 'balanced', version: 1, policy_hash: '0' },
    sessions: 40_000,
    left_out: 3,
    refused: null,
    suggestion: { ...answer.suggestion, rules: [alone, { ...alone, ...toGroup(alone) }] },
  }
}

const toGroup = (rule: object) => ({
  ...rule,
  features: pair.map((name) => `ecosystem.${name}`),
  floor: null,
  group: { category: 'ecosystem', signals: pair },
})

const story = tellStory('drafts')
const { button, expectNoFault, read } = story
const path = (rest: string) => `/tenants/drafts${rest}`
const readPolicy = () => read<Shown>('/policy')
const open = (rest: string) => story.goto(rest.replace(/^\//, ''))

describe('a draft of a policy', () => {
  beforeAll(() => sendLabelled(story))

  it('has thresholds that keys and the pointer move, with what they mean', async () => {
    const { page } = story
    await open('/policies')
    await button('Edit the policy').click()
    const review = page.getByRole('slider', { name: 'REVIEW threshold' })
    await review.waitFor()
    const from = Number(await page.getByLabel('Review from').inputValue())
    const scores = await read<FleetScores>('/policy/scores?days=30')
    const alertsADay = (at: number) => (countAlerts(scores.counts, at) / scores.days).toFixed(1)
    const draft = page.getByRole('row', { name: /^REVIEW or BLOCK, draft/ })
    const readDraft = () => draft.getByRole('cell').allInnerTexts()
    expect(countAlerts(scores.counts, from)).toBeGreaterThanOrEqual(rootedCount)
    const tooFew = 'too few to say'
    expect(await readDraft()).toEqual([
      ...[String(from), alertsADay(from), '40 % (17 to 69)', tooFew, '1 in 2 sessions'],
    ])
    await review.press('End')
    await review.press('ArrowLeft')
    expect(await page.getByLabel('Review from').inputValue()).toBe('99')
    // It takes BLOCK along.
    expect(await page.getByLabel('Block from').inputValue()).toBe('100')
    expect(await readDraft()).toEqual([
      ...['99', alertsADay(99), '0 % (0 to 28)', tooFew, '0 in 0 sessions'],
    ])
    const { x, y, width, height } = (await review.boundingBox())!
    await page.mouse.move(x + width / 2, y + height - 4)
    await page.mouse.down()
    await page.mouse.move(x - 200, y + height - 4, { steps: 3 })
    await page.mouse.up()
    const dragged = Number(await page.getByLabel('Review from').inputValue())
    expect(dragged).toBeGreaterThan(1)
    expect(dragged).toBeLessThan(99)
    expect((await readDraft())[0]).toBe(String(dragged))
    await expectNoFault()
    page.once('dialog', (dialog) => void dialog.accept())
    await button('Discard').click()
  })

  it('is suggested from outcomes into a draft only, or the page says what is missing', async () => {
    const { stack, page } = story
    const before = await readPolicy()
    await open('/policies?tab=suggest')
    await button('Suggest a policy').click()
    await page.getByText('fraud sessions: 10, at least 100 are needed').waitFor()
    expect(await findViolations(page)).toEqual([])
    // A real report of a fleet with labels: it takes 20,000 sessions, which no test here sends.
    const report = toReport()
    const { policy, weights, rules } = report.suggestion
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
    await expectNoFault()
    // What was found becomes a floor and a group of one draft.
    await button(`Add as a floor: ${rules[0]!.features.join(' + ')}`).click()
    await page.getByText('The floor is in the draft.').waitFor()
    await button(`As a group: ${rules[1]!.features.join(' + ')}`).click()
    await page.getByText('The group is in the draft.').waitFor()
    const drafts = (await read<{ data: { draft_id: string }[] }>('/drafts')).data
    expect(drafts.length).toBe(1)
    const of = `/drafts/${drafts[0]!.draft_id}`
    const written = JSON.parse((await read<{ text: string }>(of)).text) as Shown['document']
    expect(written.floors.at(-1)?.signals).toEqual(rules[0]!.floor!.signals)
    const { groups } = written.categories.ecosystem as Category
    expect(groups?.at(-1)?.signals).toEqual(pair)
    await admin(stack, 'DELETE', path(of))
    await button('Take as draft').click()
    await page.getByText('valid', { exact: true }).waitFor()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe(policy.name)
    const stored = (await read<{ data: { draft_id: string }[] }>('/drafts')).data
    const taken = await read<{ text: string }>(`/drafts/${stored[0]!.draft_id}`)
    expect(JSON.parse(taken.text)).toEqual(policy)
    expect(await readPolicy()).toEqual(before)
    page.once('dialog', (dialog) => void dialog.accept())
    await button('Discard').click()
  })

  it('gets a suppression from its URL, into a draft only', async () => {
    const { page } = story
    const before = await readPolicy()
    await open('/policies?tab=edit&suppress=root.su_binary&versions=4.3.0&reason=bad+release')
    await page.getByText('valid', { exact: true }).waitFor()
    const chosen = page.getByRole('list', { name: 'SDK versions chosen' })
    await chosen.getByText('4.3.0', { exact: true }).waitFor()
    await page.getByRole('tab', { name: 'Changes (1)' }).waitFor()
    // Nothing is wrong with a new one at first sight, nor while it is filled in.
    await button('Add a suppression').click()
    await page.getByText('not complete', { exact: true }).waitFor()
    const faults = page.getByRole('list', { name: 'What is not valid' }).or(page.getByRole('alert'))
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
    await expectNoFault()
    expect(await readPolicy()).toEqual(before)
    page.once('dialog', (dialog) => void dialog.accept())
    await button('Discard').click()
    await page.getByRole('tab', { name: 'Versions', selected: true }).waitFor()
  })
})
