/** Cases: judged by keyboard, shared by several operators, found from everywhere. */
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { makeOperator } from '../../support/console/operators.ts'
import { tellStory } from '../../support/console/story.ts'
import { until } from '../../support/process/until.ts'

type Case = { case_id: string; subject: { id: string }; alerts: number }

const casesMade = 20

/** As the server says that a signal rose in the SDK version that the devices have. */
const spike = {
  signal: 'debugger.frida_detected',
  platform: 'android',
  sdk_version: '4.2.0',
  started_at: new Date().toISOString(),
  checked_at: new Date().toISOString(),
  ended_at: null,
  share: 0.4,
  earlier_share: 0.01,
  elsewhere_share: 0.02,
  z_score: 9,
  devices: 24,
  alerts: 20,
  device_ids: [],
  alert_ids: [],
}

const hooked = {
  debugger: { frida_detected: true, native_hooks: true },
  root: { su_binary: true, magisk_detected: true },
}

const story = tellStory('cases')
const { expectNoFault } = story
const call = <T>(path: string) => story.read<T>(`/${path}`)
const counts = () => call<{ open: number; closed: number }>('cases/counts')
const raise = async (device: string, session = device) => {
  await story.send({ device, session, signals: hooked })
}
const heading = (page: Page) => page.locator('section[aria-label="Case"] h2 bdi')
/** The subject of the next case that a page opens. */
const another = (page: Page, before = '') =>
  until('another case is open', async () => {
    const [subject] = await heading(page).allTextContents()
    return subject === before ? null : subject
  })

describe('cases', () => {
  beforeAll(async () => {
    for (let at = 0; at < casesMade; at++) await raise(`case-${at}`)
    await until('each device has a case', async () => (await counts()).open === casesMade)
  })

  it('are judged by keyboard, twenty of them with 22 keys, one of them denied', async () => {
    const { page } = story
    let keys = 0
    const press = async (key: string) => {
      keys++
      await page.keyboard.press(key)
    }
    await story.goto('cases')
    await page.getByText(`${casesMade} cases`).waitFor()
    expect(await findOverflow(page)).toBe(0)
    await press('g')
    const judged = [await another(page)]
    await press('c')
    judged.push(await another(page, judged[0]!))
    const bar = page.getByRole('region', { name: 'Judged' })
    await bar.getByText(judged[0]!).waitFor()
    await press('d')
    await bar.getByRole('button', { name: 'Denied' }).waitFor()
    await expectNoFault()
    while (judged.length < casesMade) {
      await press('c')
      judged.push(await another(page, judged.at(-1)!))
    }
    await press('c')
    await page.getByText('No case is left that nobody has.', { exact: true }).waitFor()
    expect(keys).toBe(22)
    expect(new Set(judged).size).toBe(casesMade)
    expect(await counts()).toMatchObject({ open: 0, closed: casesMade })
    const { data: entries } = await call<{ data: object[] }>('lists')
    expect(entries).toMatchObject([{ list: 'deny', id: judged[0], reason: 'confirmed_case' }])
    const confirmed = await call<{ total: number }>('alerts?disposition=CONFIRMED')
    expect(confirmed.total).toBe(casesMade)

    await press('u')
    await page.getByText('Taken back: 1 alert open again', { exact: true }).waitFor()
    expect(await another(page)).toBe(judged.at(-1))
    expect(await counts()).toMatchObject({ open: 1, closed: casesMade - 1 })
  })

  it('that got an alert meanwhile are not judged before it was shown', async () => {
    const { page } = story
    await story.goto('cases?live=off')
    await page.locator('[data-case]').waitFor()
    await page.keyboard.press('j')
    const subject = await another(page)
    await page.getByRole('table', { name: 'Alerts of the case' }).waitFor()
    await raise(subject!, 'later')
    const read = async () => (await call<{ data: Case[] }>('cases?state=OPEN')).data[0]!
    await until('the case has the alert', async () => (await read()).alerts === 2)
    await page.keyboard.press('f')
    await page.getByText('Not judged: 1 alert came meanwhile').waitFor()
    expect(await read()).toMatchObject({ state: 'OPEN', alerts: 2 })
    // What is shown by now is judged.
    const saved = page.getByText(/Saved: .*, 2 alerts false positive/)
    await until('it is judged', async () => {
      await page.keyboard.press('f')
      return (await saved.count()) > 0
    })
    expect(await counts()).toMatchObject({ open: 0 })
  })

  it('are handed to one of two operators, who see each other and what the other does', async () => {
    const { page } = story
    for (const device of ['shared-1', 'shared-2', 'shared-3']) await raise(device)
    await until('three cases are open', async () => (await counts()).open === 3)
    const address = '/t/cases/cases'
    const other = await story.join(makeOperator('Cleo', 'analyst'))
    for (const one of [page, other]) {
      await one.goto(address)
      await one.getByText('3 cases').waitFor()
      await one.getByRole('switch', { name: 'Live', exact: true }).waitFor()
    }
    await Promise.all([page.keyboard.press('g'), other.keyboard.press('g')])
    const [mine, others] = [await another(page), await another(other)]
    expect(mine).not.toBe(others)
    // Whoever opens the other's case sees that they are there.
    const row = page.locator('[data-case]').filter({ hasText: others! })
    await row.click()
    await page.getByText('cleo is here').waitFor()
    await other.keyboard.press('c')
    await row.getByText('Closed').waitFor()
    await other.context().close()
    expect(await heading(page).textContent()).toBe(others)
  })

  it('are found by the beginning of an id, and from the pages of their alert and device', async () => {
    const { page } = story
    const [shown] = (await call<{ data: Case[] }>('cases?state=OPEN')).data
    const { case_id: id, subject } = shown!
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill(id.slice(0, 12))
    await page.getByRole('option').filter({ hasText: id }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Case', exact: true }).waitFor()
    await page.getByRole('table', { name: 'Alerts of the case' }).waitFor()
    await page.getByRole('link', { name: subject.id }).first().click()
    await page.getByRole('link', { name: 'Open case' }).click()
    expect(await another(page)).toBe(subject.id)
    expect(new URL(page.url()).searchParams.get('case')).toBe(id)
  })

  it('say that a bad release explains them, which a draft can suppress', async () => {
    const { page } = story
    const [, other] = (await call<{ data: Case[] }>('cases?state=OPEN')).data
    await page.route('**/prevalence-spikes?*', (route) =>
      route.fulfill({ json: { checked_at: null, data: [spike] } }),
    )
    await story.goto(`cases?case=${other!.case_id}`)
    const note = page.getByRole('note').filter({ hasText: `open for ${spike.signal}` })
    const link = note.getByRole('link', { name: 'Suppress in a draft' })
    const address = (await link.getAttribute('href')) ?? ''
    const { searchParams: draft } = new URL(address, page.url())
    expect(Object.fromEntries(draft)).toMatchObject({
      suppress: spike.signal,
      versions: spike.sdk_version,
      platforms: spike.platform,
    })
    await page.getByRole('link', { name: /^Signals ?1 spike is open$/ }).click()
    await page.getByRole('heading', { name: 'Signals', exact: true }).waitFor()
    await story.goto('alerts')
    await page.locator('[data-alert]').first().getByText('Spike', { exact: true }).waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.unroute('**/prevalence-spikes?*')
  })
})
