/** The list of alerts and one alert: triage by keyboard, explanation, changes of many, live rows. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { findViolations } from '../../support/console/accessibility.ts'
import {
  accountOn,
  makeOperator,
  type Operator,
  signInOn,
} from '../../support/console/operators.ts'
import { tellStory } from '../../support/console/story.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { until } from '../../support/process/until.ts'

type Alert = {
  alert_id: string
  disposition: string
  assignee: string | null
  decision: { risk_score: number }
  reasons: { code: string; weight: number; evidence: { signals?: string[] } }[]
}
type AlertRecord = {
  alert: Alert
  notes: { author: string; note: string }[]
  history: { actor: string; from: string; to: string }[]
}

const alertsMade = 10
const hooked = {
  debugger: { frida_detected: true, native_hooks: true },
  root: { su_binary: true, magisk_detected: true },
}

const story = tellStory('alerts')
const { expectNoFault } = story
const list = (filters = '') =>
  story.read<{ data: Alert[]; total: number }>(`/alerts?limit=100&${filters}`)
const read = (id: string) => admin<AlertRecord>(story.stack, 'GET', `/alerts/${id}`)
/** Of the last change: it stays while the pointer is on it. */
const undo = () => story.page.getByRole('button', { name: 'Undo' }).last()
/** The open alert's row. */
const openRow = () => story.page.locator('[data-alert][aria-current="true"]')

describe('alerts', () => {
  it('are triaged by keyboard alone, ten of them, and the last change is undone', async () => {
    const { page } = story
    for (let at = 0; at < alertsMade; at++) {
      await story.send({ device: `hooked-${at}`, session: `hooked-${at}`, signals: hooked })
    }
    const { data } = await until('the alerts are raised', async () => {
      const listed = await list()
      return listed.total === alertsMade ? listed : null
    })
    await story.goto('alerts?disposition=OPEN')
    await page.getByText(`${alertsMade} alerts`).waitFor()
    const keys = ['r', 'f', 'c']
    const states = ['REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED']
    const order: string[] = []
    for (let at = 0; at < alertsMade; at++) {
      await page.keyboard.press('j')
      order.push((await openRow().getAttribute('data-alert')) ?? '')
      await page.keyboard.press(keys[at % keys.length]!)
    }
    // Newest first, each once: no row moved while others left the filter.
    expect(order).toEqual(data.map(({ alert_id: id }) => id))
    await openRow().getByText('Reviewed').waitFor()
    await undo().hover()
    const expected = (at: number) => states[at % states.length]
    await until('every change has arrived', async () => {
      const now = new Map((await list()).data.map((one) => [one.alert_id, one.disposition]))
      return order.every((id, at) => now.get(id) === expected(at))
    })

    await page.keyboard.press('u')
    await openRow().getByText('Open', { exact: true }).waitFor()
    const last = order.at(-1)!
    await until('the undone change has arrived', async () => {
      return (await read(last)).alert.disposition === 'OPEN'
    })
    expect((await list('disposition=OPEN')).total).toBe(1)
    expect((await read(last)).history).toMatchObject([
      { actor: story.email, from: 'OPEN', to: 'REVIEWED' },
      { actor: story.email, from: 'REVIEWED', to: 'OPEN' },
    ])
    expect(await findViolations(page)).toEqual([])
  })

  it('have an assignee and notes, set by keyboard', async () => {
    const { page, email } = story
    const id = (await openRow().getAttribute('data-alert')) ?? ''
    await page.keyboard.press('a')
    await page.getByText(`Alert: assigned to ${email}`, { exact: true }).waitFor()
    await page.keyboard.press('n')
    await page.keyboard.type('Called the customer')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('listitem').filter({ hasText: 'Called the customer' }).waitFor()
    expect(await read(id)).toMatchObject({
      alert: { assignee: email, disposition: 'OPEN' },
      notes: [{ author: email, note: 'Called the customer' }],
    })
  })

  it('keep a note that is being written for its author alone', async () => {
    const [first, second] = [makeOperator('First', 'analyst'), makeOperator('Second', 'analyst')]
    await (await story.join(second)).context().close()
    const page = await story.join(first)
    const id = (await list()).data[0]!.alert_id
    await page.goto(`/t/alerts/alerts/${id}`)
    const note = page.getByLabel('Note', { exact: true })
    const signIn = async (operator: Operator) => {
      await page.context().clearCookies()
      // The page may have asked for something by itself before: then the sign-in page is over it.
      await page
        .getByRole('button', { name: 'Assign to me', includeHidden: true })
        .dispatchEvent('click')
      await page.getByText('Your session has ended.').waitFor()
      await signInOn(page, operator)
      await accountOn(page, operator.name).waitFor()
    }
    await note.fill('A draft of the first')
    await signIn(second)
    await note.waitFor()
    expect(await note.inputValue()).toBe('')
    await signIn(first)
    expect(await note.inputValue()).toBe('A draft of the first')
    expect((await read(id)).notes.filter((one) => one.note.startsWith('A draft'))).toEqual([])
    await page.context().close()
  })

  it('that are selected change together, and are restored by a click', async () => {
    const { page } = story
    await page.keyboard.press('Escape')
    await page.goto(`${new URL(page.url()).pathname}?disposition=FALSE_POSITIVE`)
    await page.getByText('3 alerts').waitFor()
    for (let at = 0; at < 3; at++) {
      await page.keyboard.press('j')
      await page.keyboard.press('x')
    }
    await page.getByText('3 selected').waitFor()
    await page.keyboard.press('c')
    await undo().hover()
    await until('all three are confirmed', async () => {
      return (await list('disposition=FALSE_POSITIVE')).total === 0
    })
    await undo().click()
    await until('all three are back', async () => {
      return (await list('disposition=FALSE_POSITIVE')).total === 3
    })
  })

  it('show their explanation: every reason with its points, and the raw signals', async () => {
    const { page } = story
    const { data } = await list()
    const { alert } = await read(data[0]!.alert_id)
    await story.goto(`alerts/${alert.alert_id}`)
    const why = page.getByRole('list', { name: 'Reasons, each with its points' })
    for (const { code, weight, evidence } of alert.reasons) {
      const row = why.locator('> li').filter({ hasText: code })
      await row.getByText(weight > 0 ? `+${weight}` : String(weight), { exact: true }).waitFor()
      for (const path of evidence.signals ?? []) await row.getByText(path).waitFor()
    }
    const frida = why.locator('li li').filter({ hasText: 'debugger.frida_detected' })
    await frida.getByText('= true').waitFor()
    const sum = alert.reasons.reduce((points, { weight }) => points + weight, 0)
    expect(sum).toBe(alert.decision.risk_score)
    await why.locator('> li').last().getByText(String(sum), { exact: true }).waitFor()
    expect(await why.getByText('Not explained').count()).toBe(0)
    await page.getByText('Active policy, version 1').waitFor()
  })

  it('of a whole filter change together: exact count first, then a server job', async () => {
    const { page } = story
    const { total } = await list('decision=BLOCK')
    expect(total).toBe(alertsMade)
    await story.goto('alerts?decision=BLOCK')
    await page.getByRole('button', { name: /^Actions on all/ }).click()
    await page.getByRole('menuitem', { name: 'Set disposition' }).click()
    await page.getByText(`${total} alerts match now.`).waitFor()
    expect(await findViolations(page)).toEqual([])
    await page.getByLabel('New disposition').selectOption('CONFIRMED')
    await page.getByRole('dialog').getByLabel('Note').fill('One campaign')
    await page.getByRole('button', { name: `Set ${total} alerts to Confirmed` }).click()
    await page.getByText(/^\d+ alerts are now Confirmed$/).waitFor()
    expect((await list('disposition=CONFIRMED')).total).toBe(total)
    const { history } = await read((await list('flag=ROOTED')).data[0]!.alert_id)
    expect(history.at(-1)).toMatchObject({ actor: story.email, to: 'CONFIRMED' })
    // The job is in the URL, so it is found again.
    await page.reload()
    await page.getByText(/^\d+ alerts are now Confirmed$/).waitFor()
    await page.getByRole('button', { name: 'Dismiss', exact: true }).last().click()
  })

  it('of a whole filter are downloaded as CSV', async () => {
    const { page } = story
    await page.getByRole('button', { name: /^Actions on all/ }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'Download as CSV' }).click(),
    ])
    const [head, ...rows] = readFileSync(await download.path(), 'utf8')
      .trim()
      .split(/\r?\n/)
    expect(head).toContain('alert_id')
    const { data } = await list('decision=BLOCK')
    expect(rows.map((row) => row.split(',')[0])).toEqual(data.map((one) => `"${one.alert_id}"`))
  })

  it('that are raised meanwhile are announced, and no row moves until a click', async () => {
    const { page } = story
    await story.goto('alerts')
    await page.getByRole('switch', { name: 'Live' }).waitFor()
    const first = () => page.locator('[data-alert]').first().getAttribute('data-alert')
    await page.locator('[data-alert]').first().waitFor()
    const before = await first()
    await story.send({ device: 'late', session: 'late', user: 'mallory', signals: hooked })
    await page.getByRole('button', { name: '1 new' }).waitFor()
    expect(await first()).toBe(before)
    await page.getByRole('button', { name: '1 new' }).click()
    await page.getByText(`${alertsMade + 1} alerts`).waitFor()
    const { data } = await list()
    expect(await first()).toBe(data[0]!.alert_id)
  })

  it('link to their device and user, which the search also finds by id', async () => {
    const { page } = story
    await page.keyboard.press('j')
    await page.getByRole('link', { name: 'late', exact: true }).first().click()
    await page.getByRole('heading', { name: 'Device', exact: true }).waitFor()
    await page.getByRole('table', { name: 'Sessions' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill('mallory')
    await page.getByRole('option').filter({ hasText: 'User' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'User', exact: true }).waitFor()
    await page.getByRole('table', { name: 'Devices' }).getByText('late').waitFor()
  })

  it('are shown under their own tenant, whichever one a link names', async () => {
    const { page } = story
    const [one] = (await list()).data
    for (const path of [`alerts/${one!.alert_id}`, `alerts?alert=${one!.alert_id}`]) {
      await page.goto(`/t/demo/${path}`)
      await page.waitForURL(`**/t/alerts/${path}`)
    }
  })

  it('are counted in the overview, whose tiles link to their lists', async () => {
    const { page } = story
    await story.goto('overview')
    const { alerts } = await story.read<{
      alerts: { raised: { now: number }; BLOCK: { now: number } }
    }>('/overview')
    expect(alerts.raised.now).toBe(alertsMade + 1)
    const tile = page.getByRole('link', { name: /^Alerts with BLOCK/ })
    await tile.getByText(String(alerts.BLOCK.now), { exact: true }).waitFor()
    await page.getByRole('table', { name: 'Flags' }).waitFor()
    await page.getByText('every stage agrees').or(page.getByText('Not known')).waitFor()
    await tile.click()
    await page.getByText(`${alerts.BLOCK.now} alerts`).waitFor()
  })

  it('that match no filter show a hint, and a failed list can be read again', async () => {
    const { page } = story
    const address = '/t/alerts/alerts?device_id=nobody'
    await page.goto(address)
    await page.getByText('No alert matches these filters').waitFor()
    await expectNoFault()
    await page.route('**/admin/v1/**/alerts?*', (route) =>
      route.fulfill({
        status: 503,
        headers: { 'x-request-id': 'req_of-this-test' },
        json: { status: 503, code: 'unavailable', detail: 'Alerts cannot be read.' },
      }),
    )
    await page.goto(address.replace('nobody', 'somebody'))
    await page.getByText('Alerts cannot be read.').waitFor()
    await page.unroute('**/admin/v1/**/alerts?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No alert matches these filters').waitFor()
  })
})
