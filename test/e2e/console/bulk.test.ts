/**
 * A long queue and several operators: bulk changes and their undo, a list that does not move,
 * changes that conflict, notes that are not lost.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { findViolations } from '../../support/console/accessibility.ts'
import { makeOperator } from '../../support/console/operators.ts'
import { tellStory } from '../../support/console/story.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { admin, createTenant } from '../../support/http/tenant-client.ts'
import { until } from '../../support/process/until.ts'

type Alert = { alert_id: string; disposition: string; assignee: string | null }
type AlertRecord = {
  alert: Alert
  notes: { note: string }[]
  history: { actor: string; from: string; to: string; undo: boolean }[]
}
type Job = {
  job_id: string
  state: string
  total: number
  changed: number
  kept: number
  actor: string
  undo_of: string | null
}

const alertsMade = 300
const slug = 'queue'
const story = tellStory(slug)
const { button, expectNoFault } = story
const helper = makeOperator('Helper', 'analyst')
let postgres: Postgres
let raised = 0
const raise = (count: number) =>
  raiseAlerts(
    postgres,
    Array.from({ length: count }, () => {
      raised++
      return makeAlertCandidate({
        tenantId: slug,
        deviceId: `device-${raised}`,
        sessionId: `session-${raised}`,
        action: raised % 3 === 0 ? 'BLOCK' : 'REVIEW',
        platform: 'android',
        sdkVersion: raised % 5 === 0 ? '4.3.0' : '4.2.0',
        reasons: (raised % 4 === 0 ? ['ROOTED', 'EMULATOR'] : ['ROOTED']).map((code) => ({
          code,
          weight: 30,
          evidence: { signals: ['root.su_binary'] },
        })),
      })
    }),
    Date.now,
  )
const call = <T>(method: string, path: string, body?: object) =>
  admin<T>(story.stack, method, path, body)
const list = (filters = '') =>
  call<{ data: Alert[]; total: number }>('GET', `/tenants/${slug}/alerts?limit=500&${filters}`)
const read = (id: string) => call<AlertRecord>('GET', `/alerts/${id}`)
const jobs = async () => (await call<{ data: Job[] }>('GET', `/tenants/${slug}/bulk-jobs`)).data
const rows = () => story.page.locator('[data-alert]')
const openRow = () => story.page.locator('[data-alert][aria-current="true"]')
const openId = async () => (await openRow().getAttribute('data-alert')) ?? ''
const goto = (query = '') => story.page.goto(`/t/${slug}/alerts${query}`)
const message = (why: string) => `Not saved: ${why}`
/** Chooses an entry of the menu for all matching alerts. */
const withAll = async (entry: string) => {
  await button(/^Actions on all/).click()
  await story.page.getByRole('menuitem', { name: entry }).click()
}

describe('a long queue of alerts', () => {
  beforeAll(async () => {
    const { stack } = story
    postgres = createPostgres(stack.postgres, { role: 'test', log: testLog })
    await (await story.join(helper)).context().close()
    await createTenant(stack, 'idle')
    await raise(alertsMade)
  })
  afterAll(() => postgres?.close())

  it('has at most 80 rows in the document, at any scroll position', async () => {
    const { page } = story
    await page.setViewportSize({ width: 1_280, height: 2_160 })
    await goto()
    await page.getByText(`${alertsMade} alerts`).waitFor()
    const { data } = await list()
    const seen = new Set<string>()
    await until('the last row', async () => {
      const shown = await rows().evaluateAll((all) =>
        all.map((one) => one.getAttribute('data-alert')!),
      )
      expect(shown.length).toBeLessThanOrEqual(80)
      for (const id of shown) seen.add(id)
      await page.locator('[data-alert-list]').evaluate((scroller) => {
        scroller.scrollTop += 1_000
      })
      return seen.size === alertsMade
    })
    expect(seen).toEqual(new Set(data.map((one) => one.alert_id)))
    await page.setViewportSize({ width: 1_280, height: 720 })
  })

  it('announces new alerts, and moves no row under the pointer', async () => {
    const { page } = story
    await goto('?disposition=OPEN')
    await page.getByRole('switch', { name: 'Live' }).waitFor()
    const third = rows().nth(2)
    const [id, box] = [await third.getAttribute('data-alert'), await third.boundingBox()]
    await third.hover()
    await raise(3)
    await button('3 new').waitFor()
    const same = page.locator(`[data-alert="${id}"]`)
    expect(await same.boundingBox()).toEqual(box)

    await button('3 new').click()
    await page.getByText(`${raised} alerts`).waitFor()

    // A bulk change that ends removes an alert from the filter: its row stays until the pointer
    // leaves.
    const job = { job_id: 'blk_shown', tenant_id: slug, sets: 'disposition', total: 1, done: 1 }
    const more = { disposition: 'REVIEWED', actor: 'ada', changed: 1, kept: 0, assignee: null }
    const rest = { note: null, undo_of: null, undone_by: null, created_at: '', ended_at: null }
    let state = 'running'
    await page.route('**/bulk-jobs/blk_shown', (route) =>
      route.fulfill({ json: { ...job, ...more, ...rest, state } }),
    )
    await goto('?disposition=OPEN&job=blk_shown')
    await page.getByRole('progressbar', { name: 'Alerts changed' }).waitFor()
    const first = await rows().first().getAttribute('data-alert')
    await third.hover()
    await call('POST', `/alerts/${first}/disposition`, { disposition: 'REVIEWED' })
    state = 'done'
    await page.getByText('1 alert is now Reviewed').waitFor()
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))')
    expect(await rows().first().getAttribute('data-alert')).toBe(first)
    await page.mouse.move(1_000, 10)
    await page.getByText(`${raised - 1} alerts`).waitFor()
    expect(await rows().first().getAttribute('data-alert')).not.toBe(first)
    await page.unroute('**/bulk-jobs/blk_shown')
    await call('POST', `/alerts/${first}/disposition`, { disposition: 'OPEN' })
  })

  it('continues after a lost connection with the alerts raised meanwhile', async () => {
    const { page } = story
    const { rows: found } = await postgres.query<{ last_seq: number }>(
      'select last_seq from alert_sequences where tenant_id = $1',
      [slug],
    )
    const seq = found[0]!.last_seq
    let connections = 0
    // The first connection ends at once, the second fails; then the server is back.
    await page.route('**/alerts/stream', async (route) => {
      connections++
      if (connections > 2) return route.continue()
      if (connections === 2) return route.abort()
      await route.fulfill({
        contentType: 'text/event-stream',
        body: `retry: 300\nid: ${seq}\nevent: ready\ndata: {"last_seq":${seq}}\n\n`,
      })
    })
    await goto()
    await page.getByText(`${raised} alerts`).waitFor()
    await page.getByRole('switch', { name: 'Connecting' }).waitFor()
    await raise(2)
    await button('2 new').waitFor()
    await page.getByRole('switch', { name: 'Live' }).waitFor()
    expect(connections).toBeGreaterThan(2)
    await page.unroute('**/alerts/stream')
    expect(await rows().first().getAttribute('data-alert')).not.toBe(
      (await list()).data[0]!.alert_id,
    )
    await button('2 new').click()
    await page.getByText(`${raised} alerts`).waitFor()
    expect((await list()).total).toBe(raised)
  })

  it('changes as a whole and is restored, except alerts changed since', async () => {
    const { page, email } = story
    const { total, data } = await list('decision=BLOCK')
    const later = data[5]!.alert_id
    await goto('?decision=BLOCK')
    await withAll('Set disposition')
    await page.getByText(`${total} alerts match now.`).waitFor()
    await page.getByLabel('New disposition').selectOption('CONFIRMED')
    await button(`Set ${total} alerts to Confirmed`).click()
    await page.getByText(`${total} alerts are now Confirmed`).waitFor()
    expect((await list('disposition=CONFIRMED')).total).toBe(total)
    await call('POST', `/alerts/${later}/disposition`, { disposition: 'FALSE_POSITIVE' })
    await button('Undo').click()
    await page.getByText(`${total - 1} alerts are as before; 1 stays, changed since`).waitFor()
    expect((await list('disposition=CONFIRMED')).total).toBe(0)
    expect((await read(later)).alert.disposition).toBe('FALSE_POSITIVE')
    expect((await jobs()).slice(0, 2)).toMatchObject([
      { state: 'done', total, changed: total - 1, kept: 1, actor: email },
      { state: 'done', total, changed: total },
    ])
    const other = data[1]!.alert_id
    await page.locator(`[data-alert="${other}"]`).click()
    await page.getByText(`undone by ${email}`).waitFor()
    expect((await read(other)).history).toMatchObject([
      { from: 'OPEN', to: 'CONFIRMED', undo: false },
      { actor: email, from: 'CONFIRMED', to: 'OPEN', undo: true },
    ])
  })

  it('is filtered by flag and SDK version, each with how many alerts choosing it shows', async () => {
    const { page } = story
    const choose = async (filter: string, typed: string) => {
      await button(new RegExp(`^${filter}`)).click()
      await page.getByRole('combobox', { name: `Find: ${filter}` }).fill(typed)
      const option = page.getByRole('option').filter({ hasText: / alerts$/ })
      await until('one is found', async () => (await option.count()) === 1)
      const count = /([\d,]+) alerts$/.exec((await option.textContent()) ?? '')?.[1] ?? ''
      await page.keyboard.press('Enter')
      await page.keyboard.press('Escape')
      // The button has the focus again, and says what is chosen.
      await page.locator(':focus').filter({ hasText: filter }).waitFor()
      return Number(count.replace(',', ''))
    }
    await goto()
    const emulators = await choose('Flag', 'emulator')
    expect(emulators).toBe((await list('flag=EMULATOR')).total)
    await page.getByText(`${emulators} alerts`, { exact: true }).waitFor()
    const both = await choose('SDK version', '4.3.0')
    expect(both).toBe((await list('flag=EMULATOR&sdk_version=4.3.0')).total)
    await page.getByText(`${both} alerts`, { exact: true }).waitFor()
    expect(both).toBeGreaterThan(3)
    await expectNoFault()

    // A range: from the row that is open to the one that is clicked with Shift.
    await page.keyboard.press('j')
    await rows()
      .nth(3)
      .click({ modifiers: ['Shift'] })
    await page.getByText('4 selected').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('4 selected').waitFor({ state: 'detached' })
    const open = await openId()
    await page.keyboard.press('Escape')
    await page.getByText('No alert selected').waitFor()
    expect(await page.locator(':focus').getAttribute('data-alert')).toBe(open)
  })

  it('keeps its views on the server, and moves those there that the browser had kept', async () => {
    const { page } = story
    type View = { name: string; query: object; shared: boolean; own: boolean }
    const views = async () =>
      (
        (await page.request
          .get(`/admin/v1/tenants/${slug}/saved-views?kind=alerts`)
          .then((answer) => answer.json())) as { data: View[] }
      ).data
    const kept = [{ name: 'Fresh blocks', filters: { decision: 'BLOCK', span: '24h' } }]
    await page.evaluate(
      ([key, value]) => localStorage.setItem(key!, value!),
      [`di.alert-views.${slug}`, JSON.stringify(kept)],
    )
    await goto()
    await until('the view has moved', async () => (await views()).length === 1)
    expect(await views()).toMatchObject([
      {
        name: 'Fresh blocks',
        query: { decision: 'BLOCK', span: '24h' },
        shared: false,
        own: true,
      },
    ])
    const left = () => page.evaluate((key) => localStorage.getItem(key), `di.alert-views.${slug}`)
    await until('the browser keeps none', async () => (await left()) === null)

    await goto('?flag=EMULATOR')
    await button('Views').click()
    await page.getByRole('menuitem', { name: 'Save these filters as a view' }).click()
    await page.getByLabel('Name').fill('Emulators')
    await page.getByLabel('Share it').check()
    await button('Save').click()
    await button('Emulators').click()
    await page.getByRole('menuitem', { name: 'Fresh blocks' }).click()
    await until('its filters are those of the page', async () =>
      page.url().includes('decision=BLOCK&span=24h'),
    )
    expect((await views())[0]).toMatchObject({ name: 'Emulators', shared: true })
  })

  it('is assigned by selection and by filter, with the exact number first', async () => {
    const { page, email } = story
    await goto()
    await rows().first().waitFor()
    const ids: string[] = []
    for (let at = 0; at < 3; at++) {
      await page.keyboard.press('j')
      await page.keyboard.press('x')
      ids.push(await openId())
    }
    await button('Assign').click()
    await page.getByText('3 alerts selected.').waitFor()
    expect(await findViolations(page)).toEqual([])
    await button('Assign 3 alerts').click()
    await page.getByText(`3 alerts are now assigned to ${email}`).waitFor()
    const mine = await list(`assignee=${email}`)
    expect(mine.data.map((one) => one.alert_id).sort()).toEqual(ids.sort())
    await button(/^Assignee/).click()
    await page.getByRole('option', { name: 'Me', exact: true }).click()
    await page.getByText('3 alerts', { exact: true }).waitFor()
    await button(/^Assignee/).click()
    await page.getByRole('option', { name: 'Anyone' }).click()
    await page.getByText(`${raised} alerts`).waitFor()

    const { total } = await list()
    await withAll('Assign them')
    await page.getByText(`${total} alerts match now.`).waitFor()
    await page.getByLabel('Assign to').selectOption(`${helper.name} (${helper.email})`)
    await button(`Assign ${total} alerts`).click()
    await page.getByText(`${total} alerts are now assigned to ${helper.email}`).waitFor()
    expect((await list(`assignee=${helper.email}`)).total).toBe(total)
    await button('Undo').click()
    await page.getByText(`${total} alerts are as before`).waitFor()
    expect((await list(`assignee=${email}`)).total).toBe(3)
    expect((await list('assignee=none')).total).toBe(total - 3)
  })

  it('has a page of its bulk changes, with buttons to cancel and undo each', async () => {
    const { page, email } = story
    const { total } = await list()
    let begun: Job | undefined
    // While the alerts are locked the job cannot continue.
    await postgres.transaction(async (tx) => {
      begun = await call<Job>('POST', `/tenants/${slug}/alerts/bulk-assign`, {
        filter: {},
        assignee: 'grace@example.com',
        expected_count: total,
      })
      await tx.query('select 1 from alert_sequences where tenant_id = $1 for update', [slug])
      await page.goto(`/t/${slug}/bulk-changes`)
      const row = page.getByRole('row').nth(1)
      await row.getByText('assigned to grace@example.com').first().waitFor()
      await row.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('Cancelled: ').first().waitFor()
    })
    const cancelled = await call<Job>('GET', `/bulk-jobs/${begun!.job_id}`)
    expect(cancelled).toMatchObject({ state: 'cancelled', actor: 'admin' })
    const assigned = (await list('assignee=grace@example.com')).total
    expect(assigned).toBe(cancelled.changed)

    // The selection of the previous test.
    const mine = page.getByRole('row').filter({ hasText: `3 alerts are now assigned to ${email}` })
    await mine.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('row').nth(1).getByText('Undone: 3 alerts are as before').waitFor()
    await page.getByText('; undone since').first().waitFor()
    await until('they are unassigned', async () => (await list(`assignee=${email}`)).total === 0)
    await expectNoFault()

    await page.goto('/t/idle/bulk-changes')
    await page.getByText('No bulk change in the last 30 days').waitFor()
    await page.route('**/bulk-jobs?*', (route) =>
      route.fulfill({
        status: 503,
        headers: { 'x-request-id': 'req_of-this-test' },
        json: { status: 503, code: 'unavailable', detail: 'Bulk changes cannot be read.' },
      }),
    )
    await page.reload()
    await page.getByText('Bulk changes cannot be read.').waitFor()
    await page.unroute('**/bulk-jobs?*')
  })
})

describe('an alert of two operators', () => {
  it('keeps the other operator’s change, and shows it', async () => {
    const { page } = story
    await goto()
    await rows().first().waitFor()
    await page.keyboard.press('j')
    const id = await openId()
    await page.getByRole('button', { name: 'Assign to me' }).waitFor()
    await call('POST', `/alerts/${id}/disposition`, { disposition: 'CONFIRMED' })
    await page.keyboard.press('f')
    await page.getByText(message('admin set it to CONFIRMED meanwhile.'), { exact: true }).waitFor()
    await openRow().getByText('Confirmed').waitFor()
    expect((await read(id)).alert.disposition).toBe('CONFIRMED')

    await call('PUT', `/alerts/${id}/assignee`, { assignee: 'grace@example.com' })
    await page.keyboard.press('a')
    await page.getByText(message('grace@example.com has it now.'), { exact: true }).waitFor()
    await openRow().getByTitle('grace@example.com').waitFor()
    // Nothing is left to undo.
    expect(await button('Undo').count()).toBe(0)
    expect((await read(id)).alert.assignee).toBe('grace@example.com')
  })

  it('is assigned at once and unassigned by the undo key', async () => {
    const { page, email } = story
    await page.keyboard.press('j')
    const id = await openId()
    await page.getByRole('button', { name: 'Assign to me' }).waitFor()
    const { assignee } = (await read(id)).alert
    await page.keyboard.press('a')
    // Under the pointer the note stays.
    await button('Undo').hover()
    await page.getByText(`Alert: assigned to ${email}`, { exact: true }).waitFor()
    await until('it is assigned', async () => (await read(id)).alert.assignee === email)
    await page.keyboard.press('u')
    await until('it is as before', async () => (await read(id)).alert.assignee === assignee)
  })

  it('can be restored for eight seconds, and not after them', async () => {
    // A context of its own, whose clock goes on only as the test says: one clock is of all pages.
    const context = await story.browser.newContext({
      baseURL: story.stack.console,
      storageState: await story.page.context().storageState(),
    })
    const page = await context.newPage()
    await page.clock.install()
    await page.goto(`/t/${slug}/alerts?live=off&disposition=OPEN`)
    await page.locator('[data-alert]').first().waitFor()
    await page.clock.pauseAt(Date.now() + 3_600_000)
    const undo = page.getByRole('button', { name: 'Undo', exact: true })
    const tick = async (isThere: boolean): Promise<number> => {
      let passedMs = 0
      await until('the note', async () => {
        await page.clock.runFor(100)
        passedMs += 100
        return (await undo.count()) > 0 === isThere
      })
      return passedMs
    }
    const open = page.locator('[data-alert][aria-current="true"]')
    await page.keyboard.press('j')
    await until('a row is open', async () => {
      await page.clock.runFor(100)
      return (await open.count()) === 1
    })
    const id = (await open.getAttribute('data-alert')) ?? ''
    await page.keyboard.press('f')
    await tick(true)
    const forMs = await tick(false)
    expect(forMs).toBeGreaterThan(7_000)
    expect(forMs).toBeLessThanOrEqual(8_000)
    await page.keyboard.press('u')
    await page.keyboard.press('c')
    await tick(true)
    await page.clock.runFor(6_000)
    await undo.click()
    const changes = async () => {
      await page.clock.runFor(100)
      return (await read(id)).history.map((one) => one.to)
    }
    await until('it is back', async () => (await changes()).length === 3)
    expect(await changes()).toEqual(['FALSE_POSITIVE', 'CONFIRMED', 'FALSE_POSITIVE'])
    await context.close()
  })

  it('handles fast keys one after the other', async () => {
    const { page } = story
    await page.keyboard.press('j')
    const id = await openId()
    const before = (await read(id)).history.length
    let calls = 0
    const { promise: pressed, resolve: press } = Promise.withResolvers<void>()
    // The first request waits, so a second one that did not wait for it would arrive earlier.
    await page.route('**/disposition', async (route) => {
      if (++calls === 1) await pressed
      await route.continue()
    })
    for (const key of ['r', 'f', 'c', 'r']) await page.keyboard.press(key)
    press()
    await until('all four', async () => (await read(id)).history.length === before + 4)
    expect((await read(id)).history.slice(before).map((one) => one.to)).toEqual([
      'REVIEWED',
      'FALSE_POSITIVE',
      'CONFIRMED',
      'REVIEWED',
    ])
    await openRow().getByText('Reviewed').waitFor()
    await page.unroute('**/disposition')
  })

  it('loses no typed note: on a failed save, at other alerts, and before leaving', async () => {
    const { page } = story
    const id = await openId()
    const note = page.getByRole('textbox', { name: 'Note' })
    await page.route('**/notes', (route) =>
      route.fulfill({
        status: 503,
        json: { status: 503, code: 'unavailable', detail: 'Notes cannot be kept.' },
      }),
    )
    await note.fill('A long thought')
    await button('Add the note').click()
    await page.getByText('Notes cannot be kept.').waitFor()
    expect(await note.inputValue()).toBe('A long thought')
    await page.unroute('**/notes')
    await note.blur()
    await page.keyboard.press('j')
    await until('another alert', async () => (await openId()) !== id)
    await until('its own note', async () => (await note.inputValue()) === '')
    await page.keyboard.press('k')
    await until('the note again', async () => (await note.inputValue()) === 'A long thought')

    const questions: string[] = []
    page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      void dialog.dismiss()
    })
    await page.getByRole('link', { name: 'Overview' }).click()
    await until('the question', () => questions.length === 1)
    page.removeAllListeners('dialog')
    expect(questions[0]).toContain('A note was not added yet')
    expect(new URL(page.url()).pathname).toBe(`/t/${slug}/alerts`)

    await button('Add the note').click()
    await page.getByRole('listitem').filter({ hasText: 'A long thought' }).waitFor()
    expect(await note.inputValue()).toBe('')
    expect((await read(id)).notes).toMatchObject([{ note: 'A long thought' }])
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor()
  })
})
