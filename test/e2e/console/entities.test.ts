/**
 * Devices, users and phones: links, their graph, signal changes, and which installs are one phone.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { settle } from '../../support/console/browser.ts'
import { tellStory } from '../../support/console/story.ts'
import { runDi } from '../../support/process/command-line.ts'
import { until } from '../../support/process/until.ts'

type Links = {
  data: {
    id: string
    shared: { id: string }[]
    shared_total: number
    sessions: number
  }[]
  total: number
}
type Changes = {
  data: { signal: string; change: string; session_id: string; event_id: string }[]
  signals: { signal: string; state: string | null }[]
}

type Phone = { phone_id: string; confidence: number; installs: number }

/** A path, quotes, markup, a mark that turns the direction of text, and a great length. */
const oddDevice = `a/b?"'<img src=x>&%2F\u202E ${'long-'.repeat(40)}`
const oddUser = `u/"<script>alert(1)</script>\u200F`
const oddUserShown = `u/"<script>alert(1)</script>\\u{200f}`
const farmSize = 205

const hooked = { debugger: { frida_detected: true, native_hooks: true } }
const rooted = { root: { su_binary: true } }
const clean = { root: { su_binary: false } }

const story = tellStory('entities')
const { button, expectNoFault } = story
const read = <T>(path: string) => story.read<T>(`/${path}`)
const deviceAt = (id: string) => `devices/${encodeURIComponent(id)}`
const userAt = (id: string) => `users/${encodeURIComponent(id)}`

async function open(path: string): Promise<void> {
  await story.goto(path)
  await settle(story.page)
}

/** The cells of a table, without its head; of an id that can be copied, its text alone. */
async function readTable(name: string): Promise<string[][]> {
  const rows = await story.readTable(name)
  return rows.map((cells) => cells.map((cell) => cell.split('\n').at(-1) ?? ''))
}

describe('devices and users', () => {
  beforeAll(async () => {
    for (const submission of [
      { device: 'phone', session: 'p-1', user: 'ada', signals: clean },
      { device: 'phone', session: 'p-2', user: 'ada', signals: rooted },
      { device: 'phone', session: 'p-3', user: 'unknown' },
      { device: 'phone', session: 'p-4', user: 'bob', signals: clean },
      { device: 'phone', session: 'roaming', user: 'ada', signals: rooted },
      // Linked by a user, by a session, by both; and twice by a placeholder alone.
      { device: 'tablet', session: 't-1', user: 'ada', signals: hooked },
      { device: 'emulator', session: 'roaming', user: 'eve' },
      { device: oddDevice, session: 'roaming', user: oddUser },
      { device: oddDevice, session: 'o/<b>2', user: 'ada' },
      { device: 'stranger', session: 's-1', user: 'unknown' },
      { device: 'unknown', session: 'roaming', user: 'ada' },
    ]) {
      await story.send(submission)
    }
    for (let n = 0; n < farmSize; n++) {
      await story.send({ device: `farm-${n}`, session: `farm-${n}`, user: 'farmer' })
    }
    await until('everything is stored', async () => {
      const user = await read<{ user: { devices_total: number } }>(userAt('farmer')).catch(
        () => null,
      )
      return user?.user.devices_total === farmSize
    })
  })

  it('lists devices that share users and sessions, never by a placeholder', async () => {
    const links = await read<Links>(`${deviceAt('phone')}/links`)
    const expected = [
      { id: oddDevice, shared: ['ada'], sessions: 1 },
      { id: 'emulator', shared: [], sessions: 1 },
      { id: 'tablet', shared: ['ada'], sessions: 0 },
    ]
    const found = links.data.map(({ id, shared, sessions }) => {
      return { id, shared: shared.map((one) => one.id), sessions }
    })
    expect(found).toEqual(expected)
    await open(deviceAt('phone'))
    const shown = await readTable('Linked devices')
    expect(shown.map((cells) => cells.slice(1, 3))).toEqual([
      ['ada', '1'],
      ['none', '1'],
      ['ada', '0'],
    ])
    expect(shown.slice(1).map(([id]) => id)).toEqual(['emulator', 'tablet'])
    const named = (await readTable('Sessions')).map(([id, , , , , users]) => [id, users])
    expect(named).toContainEqual(['p-4', 'bob'])
    const users = await read<Links>(`${userAt('ada')}/links`)
    expect(users.data.map(({ id }) => id).sort()).toEqual(['bob', oddUser].sort())
    await open(userAt('ada'))
    const sessions = (await readTable('Sessions')).map(([id, device]) => [id, device])
    expect(sessions).toContainEqual(['roaming', 'phone'])
    expect(sessions).toContainEqual(['roaming', 'unknown'])
    const texts = (await readTable('Linked users')).map(([id, shared]) => [id, shared])
    expect(texts).toContainEqual(['bob', 'phone'])
    expect(texts.map(([id]) => id).sort()).toEqual(['bob', oddUserShown].sort())
    // Nothing links a placeholder itself.
    expect(await read<Links>(`${deviceAt('unknown')}/links`)).toMatchObject({ total: 0 })
    await open(deviceAt('stranger'))
    await story.page.getByText('No other device is linked').waitFor()
    await story.page.getByText('No signal was ever detected').waitFor()
  })

  it('draws links as a graph that the arrow keys walk and Enter opens', async () => {
    const { page } = story
    await open(deviceAt('phone'))
    await page.getByRole('tab', { name: 'Graph' }).click()
    const graph = page.getByRole('group', { name: /^Graph of links/ })
    await graph.waitFor()
    expect(new URL(page.url()).searchParams.get('links')).toBe('graph')
    // This one, three devices, and the one user in common of them.
    expect(await graph.getByRole('link').count()).toBe(5)
    await expectNoFault()
    await page.reload()
    await graph.waitFor()
    await graph.getByRole('link', { name: /^Device phone, this page/ }).focus()
    await page.getByText(/^Device phone, this page, .*3 lines$/).waitFor()
    await graph
      .getByRole('link', { name: /^Device tablet, linked, risk \d+, 1 alert, 1 open,/ })
      .waitFor()
    expect(await graph.locator('a[tabindex="0"]').count()).toBe(1)
    const focused = () => page.evaluate<string>('document.activeElement.ariaLabel')
    const seen = new Set<string>()
    for (let round = 0; round < 6 && seen.size < 4; round++) {
      for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp']) {
        await page.keyboard.press(key)
        seen.add(await focused())
      }
    }
    expect(seen.size).toBeGreaterThan(2)
    await page.keyboard.press('Home')
    expect(await focused()).toMatch(/^Device phone,/)
    await graph.getByRole('link', { name: /^Device tablet/ }).focus()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/devices/tablet')
  })

  it('draws at most 200 nodes and says how many are left out', async () => {
    const { page } = story
    const links = await read<Links>(`${deviceAt('farm-0')}/links`)
    expect([links.data.length, links.total]).toEqual([200, farmSize - 1])
    await open(`${deviceAt('farm-0')}?links=graph`)
    await page.getByText(`the first 200 of ${farmSize - 1} devices`).waitFor()
    const graph = page.getByRole('group', { name: /^Graph of links/ })
    await graph.waitFor()
    expect(await graph.getByRole('link').count()).toBe(200)
    await page.getByText('198 linked devices and 1 user in common').waitFor()
    await page.getByText(`${farmSize - 1 - 198} linked devices left out`).waitFor()
  })

  it('shows when a signal appeared, went and came back, with the session and the event', async () => {
    const { page } = story
    const changes = await read<Changes>(`${deviceAt('phone')}/signal-changes`)
    expect(changes.data.map((one) => [one.change, one.signal, one.session_id])).toEqual([
      ['returned', 'root.su_binary', 'roaming'],
      ['went', 'root.su_binary', 'p-4'],
      ['appeared', 'root.su_binary', 'p-2'],
    ])
    await open(deviceAt('phone'))
    expect((await readTable('Signals'))[0]!.slice(0, 2)).toEqual(['root.su_binary', 'detected'])
    await page.getByRole('button', { name: 'Kind' }).click()
    await page.getByRole('menuitemcheckbox', { name: 'Signal' }).click()
    await page.keyboard.press('Escape')
    const shown = async () => (await readTable('Timeline')).map(([, kind, what]) => [kind, what])
    const signals = [
      ['Signal', 'root.su_binary came back'],
      ['Signal', 'root.su_binary went'],
      ['Signal', 'root.su_binary appeared'],
    ]
    await until(
      'only signals',
      async () => JSON.stringify(await shown()) === JSON.stringify(signals),
    )
    const table = page.getByRole('region', { name: 'Timeline' })
    await table.getByRole('link').last().click()
    await page.waitForURL(`**/events/${changes.data.at(-1)!.event_id}`)
  })

  it('has everything in one timeline, each kind in its place, and the same over the API', async () => {
    type Line = { kind: string; id: string; at: string }
    type Timeline = { data: Line[]; next_cursor: string | null; incomplete: object[] }
    const all = await read<Timeline>(`${deviceAt('phone')}/timeline?limit=200`)
    expect(all.incomplete).toEqual([])
    expect(all.next_cursor).toBeNull()
    const events = await read<{ data: { event_id: string; received_at: string }[] }>(
      'events?device_id=phone&limit=200',
    )
    const of = (kind: string) => all.data.filter((one) => one.kind === kind)
    expect(of('event').map(({ id }) => id)).toEqual(events.data.map((one) => one.event_id))
    const alerts = await read<{ data: { alert_id: string }[] }>('alerts?device_id=phone')
    expect(alerts.data.length).toBeGreaterThan(0)
    expect(of('alert').map(({ id }) => id)).toEqual(alerts.data.map((one) => one.alert_id))
    expect(of('signal')).toHaveLength(3)
    expect(all.data.map(({ at }) => at)).toEqual(
      all.data
        .map(({ at }) => at)
        .toSorted()
        .reverse(),
    )
    await open(deviceAt('phone'))
    expect(await readTable('Timeline')).toHaveLength(all.data.length)
    const user = await read<Timeline>(`${userAt('ada')}/timeline?kinds=event,signal&limit=200`)
    const own = await read<{ data: { event_id: string }[] }>('events?user_id=ada&limit=200')
    expect(user.data.filter(({ kind }) => kind === 'event').map(({ id }) => id)).toEqual(
      own.data.map((one) => one.event_id),
    )
  })

  it('shows the score of each session as a chart, and the same as a table', async () => {
    const { page } = story
    await open(deviceAt('phone'))
    await page.getByRole('img', { name: /^Risk score of each session/ }).waitFor()
    await button('Table').click()
    const { device } = await read<{ device: { sessions: { risk_score: number }[] } }>(
      deviceAt('phone'),
    )
    const scores = (await readTable('Risk score of each session')).map(([, score]) => Number(score))
    expect(scores).toEqual(device.sessions.map((one) => one.risk_score).toReversed())
    expect(Math.max(...scores)).toBeGreaterThan(0)
  })

  it('takes ids of every spelling, each shown as a text', async () => {
    const { page } = story
    await open(userAt(oddUser))
    await page.getByText(oddUserShown).first().waitFor()
    const link = page.getByRole('region', { name: 'Devices' }).getByRole('link')
    expect(await link.textContent()).toContain(`a/b?"'<img src=x>&%2F\\u{202e} long-`)
    await link.click()
    await page.getByRole('heading', { name: 'Device', exact: true }).waitFor()
    await settle(page)
    expect(decodeURIComponent(new URL(page.url()).pathname)).toContain(oddDevice)
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect((await readTable('Sessions')).map(([id]) => id!.includes('o/<b>2'))).toContain(true)
    await expectNoFault()
    await page.reload()
    await page.getByRole('tab', { name: 'Graph' }).click()
    await page.getByRole('group', { name: /^Graph of links/ }).waitFor()
    const { device } = await read<{ device: { device_id: string; users_seen_on: string[] } }>(
      deviceAt(oddDevice),
    )
    expect(device).toMatchObject({ device_id: oddDevice, users_seen_on: ['ada', oddUser] })
    await page.getByRole('link', { name: oddUserShown }).first().click()
    await page.getByRole('heading', { name: 'User', exact: true }).waitFor()
    expect(decodeURIComponent(new URL(page.url()).pathname)).toContain(oddUser)
  })

  it('says what failed with its request id, and tries again', async () => {
    const { page } = story
    await page.route('**/devices/phone/links', (route) =>
      route.fulfill({
        status: 503,
        headers: { 'x-request-id': 'req_of-the-links' },
        json: { status: 503, code: 'unavailable', detail: 'The links cannot be read.' },
      }),
    )
    await open(deviceAt('phone'))
    await button('Copy req_of-the-links').waitFor()
    await page.unroute('**/devices/phone/links')
    await button('Try again').click()
    expect(await readTable('Linked devices')).toHaveLength(3)
  })

  it('on one phone are shown with the evidence, split off with a reason, and undone', async () => {
    const { page } = story
    const identifiers = { media_drm_id: '8f14e45fceea167a5a36dedd4bea2543' }
    const sizes = { storage_bytes: 128e9, memory_bytes: 8e9, screen: '1080x2400' }
    const hardware = { brand: 'Google', model: 'Pixel 8', ...sizes }
    const phoneOf = async (id: string) => {
      const { device } = await read<{ device: { phone: Phone | null } }>(deviceAt(id))
      return device.phone
    }
    for (const [device, extra] of [
      ['install-1', { device: { ...hardware, identifiers } }],
      ['install-2', { device: { ...hardware, identifiers } }],
      ['install-3', { device: { ...hardware, model: 'Pixel 9' } }],
    ] as const) {
      const submission = { device, session: device, user: 'zoe', signals: hooked, extra }
      await story.send(submission)
      await until('its phone is decided', async () => (await phoneOf(device)) !== null)
    }
    const both = await phoneOf('install-2')
    expect(both!.confidence).toBeGreaterThan(0.99)
    expect(await phoneOf('install-1')).toEqual({ ...both!, confidence: 1, installs: 2 })

    await open(deviceAt('install-2'))
    await page.getByRole('link', { name: both!.phone_id }).click()
    await page.getByRole('heading', { name: 'Phone', exact: true }).waitFor()
    await settle(page)
    await page.getByText('2 alerts, 2 open', { exact: true }).waitFor()
    const installs = async () => (await readTable('Installs')).map(([id]) => id).sort()
    expect(await installs()).toEqual(['install-1', 'install-2'])
    const found = (await readTable('Evidence')).map(([field, text]) => [field, text])
    expect(found).toContainEqual(['Identifier media_drm_id', 'equal'])
    expect(found).toContainEqual(['Hardware and settings', 'the same hardware'])

    await open(deviceAt('install-1'))
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page, tenant or id' }).fill(both!.phone_id)
    await page.getByRole('option').filter({ hasText: 'Phone' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Phone', exact: true }).waitFor()
    await settle(page)

    // The first install is what the phone is named after.
    expect(await button('Split off').count()).toBe(1)
    await button('Split off').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('sold to somebody else')
    await expectNoFault()
    await dialog.getByRole('button', { name: 'Split off' }).click()
    await page.getByText('The install is a phone of its own.', { exact: true }).waitFor()
    await until('the page shows one', async () => (await installs()).length === 1)
    expect(await phoneOf('install-2')).toMatchObject({ installs: 1, confidence: 1 })
    // Its alert left with it, for a case of its own.
    const { data: cases } = await read<{ data: { alerts: number }[] }>(`cases?q=phn_`)
    expect(cases.filter(({ alerts }) => alerts === 1)).toHaveLength(3)
    const [correction] = await readTable('Corrections')
    expect(correction!.slice(2, 4)).toEqual(['install-2', 'sold to somebody else'])
    const region = page.getByRole('region', { name: 'Corrections', exact: true })
    await region.getByRole('button', { name: 'Undo' }).click()
    await until('the page shows both again', async () => (await installs()).length === 2)
    expect(await phoneOf('install-2')).toEqual(both)

    await button('Join an install').click()
    await dialog.getByLabel('Install').fill('nobody')
    await dialog.getByLabel('Reason').fill('the same photo')
    await dialog.getByRole('button', { name: 'Join' }).click()
    await dialog.getByText('there is no telemetry of it').waitFor()
    await dialog.getByLabel('Install').fill('install-3')
    await dialog.getByRole('button', { name: 'Join' }).click()
    await until('the page shows three', async () => (await installs()).length === 3)
    const { data } = await read<{ data: { action: string }[] }>('audit?limit=3')
    expect(data.map(({ action }) => action)).toEqual([
      'phone.joined',
      'phone.correction_undone',
      'phone.split',
    ])
  })

  it('are printed by the command line as the API answers', async () => {
    const { stack } = story
    const env = { CONSOLE_URL: stack.console, ADMIN_TOKEN: stack.admin_token }
    const di = async (...args: string[]) => (await runDi(args, env)).stdout
    const device = JSON.parse(await di('devices', 'show', 'entities', oddDevice, '--json'))
    expect(device).toEqual({
      ...(await read<object>(deviceAt(oddDevice))),
      signal_changes: await read(`${deviceAt(oddDevice)}/signal-changes`),
      links: await read(`${deviceAt(oddDevice)}/links`),
    })
    const user = JSON.parse(await di('users', 'show', 'entities', oddUser, '--json'))
    const links = await read(`${userAt(oddUser)}/links`)
    expect(user).toEqual({ ...(await read<object>(userAt(oddUser))), links })
    const text = await di('devices', 'show', 'entities', 'phone')
    expect(text).toMatch(/SIGNAL CHANGES\nAT .*\n.* returned {2}root\.su_binary {2}roaming\n/)
    expect(text).toMatch(/LINKED DEVICES\n[\s\S]*\ntablet .* 0 +ada\n/)
    expect(await di('users', 'show', 'entities', oddUser)).toContain(oddUserShown)
  })
})
