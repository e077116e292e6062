/** The part of the console's story about alerts and cases: triage, explanation and judging. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { findOverflow, findViolations } from '../../support/console/accessibility.ts'
import { openPage } from '../../support/console/browser.ts'
import {
  admin,
  createTenant,
  ingest,
  type Tenant,
  toBody,
} from '../../support/http/tenant-client.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

/** The results of earlier tests: a signed-in operator of all tenants. */
export type Story = { running: TestStack; page: Page; email: string }

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

const password = 'three old clocks chime'

/** A page of its own, where a new analyst is signed in. */
async function joinAs({ running, page }: Story, email: string, name: string): Promise<Page> {
  const { console: baseURL } = running.stack
  const body = { email, role: 'analyst' }
  const path = '/operators/invitations'
  const { url } = await admin<{ url: string }>(running.stack, 'POST', path, body)
  const opened = await openPage(page.context().browser()!, { baseURL })
  await opened.page.goto(url)
  await opened.page.getByLabel('Your name').fill(name)
  await opened.page.getByLabel('Password').fill(password)
  await opened.page.getByRole('button', { name: 'Create the account' }).click()
  await opened.page.getByRole('button', { name: `Account of ${name}` }).waitFor()
  return opened.page
}

export function describeAlerts(getStory: () => Story): void {
  let tenant: Tenant
  const list = (filters = '') => {
    const { running } = getStory()
    const path = `/tenants/${tenant.tenant_id}/alerts?limit=100&${filters}`
    return admin<{ data: Alert[]; total: number }>(running.stack, 'GET', path)
  }
  const read = (id: string) => admin<AlertRecord>(getStory().running.stack, 'GET', `/alerts/${id}`)
  /** The open alert's row. */
  const openRow = () => getStory().page.locator('[data-alert][aria-current="true"]')

  describe('alerts', () => {
    beforeAll(async () => {
      tenant = await createTenant(getStory().running.stack, 'alerts')
    })

    it('are triaged by keyboard alone, ten of them, and the last change is undone', async () => {
      const { running, page } = getStory()
      for (let at = 0; at < alertsMade; at++) {
        const body = toBody(tenant.tenant_id, {
          device: `hooked-${at}`,
          session: `hooked-${at}`,
          signals: hooked,
        })
        await ingest(running.stack, tenant.hmac_secret, body)
      }
      const { data } = await until('the alerts are raised', async () => {
        const listed = await list()
        return listed.total === alertsMade ? listed : null
      })
      await page.goto(`/t/${tenant.tenant_id}/alerts?disposition=OPEN`)
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
        { actor: getStory().email, from: 'OPEN', to: 'REVIEWED' },
        { actor: getStory().email, from: 'REVIEWED', to: 'OPEN' },
      ])
      expect(await findViolations(page)).toEqual([])
    })

    it('have an assignee and notes, set by keyboard', async () => {
      const { page, email } = getStory()
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
      await (await joinAs(getStory(), 'second@example.com', 'Second')).context().close()
      const page = await joinAs(getStory(), 'first@example.com', 'First')
      const id = (await list()).data[0]!.alert_id
      await page.goto(`/t/${tenant.tenant_id}/alerts/${id}`)
      const note = page.getByLabel('Note', { exact: true })
      const signIn = async (email: string, name: string) => {
        await page.context().clearCookies()
        // The page may have asked for something by itself before: then the sign-in page is over it.
        await page
          .getByRole('button', { name: 'Assign to me', includeHidden: true })
          .dispatchEvent('click')
        await page.getByText('Your session has ended.').waitFor()
        await page.getByLabel('Email').fill(email)
        await page.getByLabel('Password').fill(password)
        await page.getByRole('button', { name: 'Sign in', exact: true }).click()
        await page.getByRole('button', { name: `Account of ${name}` }).waitFor()
      }
      await note.fill('A draft of the first')
      await signIn('second@example.com', 'Second')
      await note.waitFor()
      expect(await note.inputValue()).toBe('')
      await signIn('first@example.com', 'First')
      expect(await note.inputValue()).toBe('A draft of the first')
      expect((await read(id)).notes.filter((one) => one.note.startsWith('A draft'))).toEqual([])
      await page.context().close()
    })

    it('that are selected change together, and are restored by a click', async () => {
      const { page } = getStory()
      await page.keyboard.press('Escape')
      await page.goto(`${new URL(page.url()).pathname}?disposition=FALSE_POSITIVE`)
      await page.getByText('3 alerts').waitFor()
      for (let at = 0; at < 3; at++) {
        await page.keyboard.press('j')
        await page.keyboard.press('x')
      }
      await page.getByText('3 selected').waitFor()
      await page.keyboard.press('c')
      await until('all three are confirmed', async () => {
        return (await list('disposition=FALSE_POSITIVE')).total === 0
      })
      await page.getByRole('button', { name: 'Undo' }).last().click()
      await until('all three are back', async () => {
        return (await list('disposition=FALSE_POSITIVE')).total === 3
      })
    })

    it('show their explanation: every reason with its points, and the raw signals', async () => {
      const { page } = getStory()
      const { data } = await list()
      const { alert } = await read(data[0]!.alert_id)
      await page.goto(`/t/${tenant.tenant_id}/alerts/${alert.alert_id}`)
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
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
    })

    it('of a whole filter change together: exact count first, then a server job', async () => {
      const { page } = getStory()
      const { total } = await list('decision=BLOCK')
      expect(total).toBe(alertsMade)
      await page.goto('/t/alerts/alerts?decision=BLOCK')
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
      expect(history.at(-1)).toMatchObject({ actor: getStory().email, to: 'CONFIRMED' })
      // The job is in the URL, so it is found again.
      await page.reload()
      await page.getByText(/^\d+ alerts are now Confirmed$/).waitFor()
      await page.getByRole('button', { name: 'Dismiss', exact: true }).last().click()
    })

    it('of a whole filter are downloaded as CSV', async () => {
      const { page } = getStory()
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
      expect(rows.map((row) => row.split(',')[0])).toEqual(data.map((one) => one.alert_id))
    })

    it('that are raised meanwhile are announced, and no row moves until a click', async () => {
      const { running, page } = getStory()
      await page.goto('/t/alerts/alerts')
      await page.getByRole('switch', { name: 'Live' }).waitFor()
      const first = () => page.locator('[data-alert]').first().getAttribute('data-alert')
      await page.locator('[data-alert]').first().waitFor()
      const before = await first()
      const body = toBody('alerts', {
        device: 'late',
        session: 'late',
        user: 'mallory',
        signals: hooked,
      })
      await ingest(running.stack, tenant.hmac_secret, body)
      await page.getByRole('button', { name: '1 new' }).waitFor()
      expect(await first()).toBe(before)
      await page.getByRole('button', { name: '1 new' }).click()
      await page.getByText(`${alertsMade + 1} alerts`).waitFor()
      const { data } = await list()
      expect(await first()).toBe(data[0]!.alert_id)
    })

    it('link to their device and user, which the search also finds by id', async () => {
      const { page } = getStory()
      await page.keyboard.press('j')
      await page.getByRole('link', { name: 'late', exact: true }).first().click()
      await page.getByRole('heading', { name: 'Device', exact: true }).waitFor()
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill('mallory')
      await page.getByRole('option').filter({ hasText: 'User' }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'User', exact: true }).waitFor()
      await page.getByRole('table', { name: 'Devices' }).getByText('late').waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
    })

    it('are shown under their own tenant, whichever one a link names', async () => {
      const { page } = getStory()
      const [one] = (await list()).data
      for (const path of [`alerts/${one!.alert_id}`, `alerts?alert=${one!.alert_id}`]) {
        await page.goto(`/t/demo/${path}`)
        await page.waitForURL(`**/t/${tenant.tenant_id}/${path}`)
      }
    })

    it('are counted in the overview, whose tiles link to their lists', async () => {
      const { page, running } = getStory()
      await page.goto(`/t/${tenant.tenant_id}/overview`)
      const { alerts } = await admin<{
        alerts: { raised: { now: number }; BLOCK: { now: number } }
      }>(running.stack, 'GET', `/tenants/${tenant.tenant_id}/overview`)
      expect(alerts.raised.now).toBe(alertsMade + 1)
      const tile = page.getByRole('link', { name: /^Alerts with BLOCK/ })
      await tile.getByText(String(alerts.BLOCK.now), { exact: true }).waitFor()
      await page.getByRole('table', { name: 'Flags' }).waitFor()
      await page.getByText('every stage agrees').or(page.getByText('Not known')).waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
      await tile.click()
      await page.getByText(`${alerts.BLOCK.now} alerts`).waitFor()
    })

    it('that match no filter show a hint, and a failed list can be read again', async () => {
      const { page } = getStory()
      const address = `/t/${tenant.tenant_id}/alerts?device_id=nobody`
      await page.goto(address)
      await page.getByText('No alert matches these filters').waitFor()
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
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
}

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

export function describeCases(getStory: () => Story): void {
  let tenant: Tenant
  const call = <T>(path: string) => {
    return admin<T>(getStory().running.stack, 'GET', `/tenants/${tenant.tenant_id}/${path}`)
  }
  const counts = () => call<{ open: number; closed: number }>('cases/counts')
  const raise = async (device: string, session = device) => {
    const body = toBody(tenant.tenant_id, { device, session, signals: hooked })
    await ingest(getStory().running.stack, tenant.hmac_secret, body)
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
      tenant = await createTenant(getStory().running.stack, 'cases')
      for (let at = 0; at < casesMade; at++) await raise(`case-${at}`)
      await until('each device has a case', async () => (await counts()).open === casesMade)
    })

    it('are judged by keyboard, twenty of them with 22 keys, one of them denied', async () => {
      const { page } = getStory()
      let keys = 0
      const press = async (key: string) => {
        keys++
        await page.keyboard.press(key)
      }
      await page.goto(`/t/${tenant.tenant_id}/cases`)
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
      expect(await findViolations(page)).toEqual([])
      expect(await findOverflow(page)).toBe(0)
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
      const { page } = getStory()
      await page.goto(`/t/${tenant.tenant_id}/cases?live=off`)
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
      const { page } = getStory()
      for (const device of ['shared-1', 'shared-2', 'shared-3']) await raise(device)
      await until('three cases are open', async () => (await counts()).open === 3)
      const address = `/t/${tenant.tenant_id}/cases`
      const other = await joinAs(getStory(), 'cleo@example.com', 'Cleo')
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
      const { page } = getStory()
      const [shown] = (await call<{ data: Case[] }>('cases?state=OPEN')).data
      const { case_id: id, subject } = shown!
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill(id.slice(0, 12))
      await page.getByRole('option').filter({ hasText: id }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Case', exact: true }).waitFor()
      await page.getByRole('table', { name: 'Alerts of the case' }).waitFor()
      expect(await findOverflow(page)).toBe(0)
      await page.getByRole('link', { name: subject.id }).first().click()
      await page.getByRole('link', { name: 'Open case' }).click()
      expect(await another(page)).toBe(subject.id)
      expect(new URL(page.url()).searchParams.get('case')).toBe(id)
    })

    it('say that a bad release explains them, which a draft can suppress', async () => {
      const { page } = getStory()
      const [, other] = (await call<{ data: Case[] }>('cases?state=OPEN')).data
      await page.route('**/prevalence-spikes?*', (route) =>
        route.fulfill({ json: { checked_at: null, data: [spike] } }),
      )
      await page.goto(`/t/${tenant.tenant_id}/cases?case=${other!.case_id}`)
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
      await page.goto(`/t/${tenant.tenant_id}/alerts`)
      await page.locator('[data-alert]').first().getByText('Spike', { exact: true }).waitFor()
      expect(await findViolations(page)).toEqual([])
      await page.unroute('**/prevalence-spikes?*')
    })
  })
}
