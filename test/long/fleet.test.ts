/**
 * The simulated fleet on one stack: the history that `npm start` creates in a new data folder, of
 * which every page of the console shows some and on which the APIs agree; and `di fleet`.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { launchBrowser, openPage, settle, type WatchedPage } from '../support/console/browser.ts'
import { admin } from '../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../support/process/stack.ts'
import { until } from '../support/process/until.ts'
import { describeFleetRuns } from './fleet-runs.ts'

const tenant = 'demo-fleet'
const cli = fileURLToPath(new URL('../../services/console/cli.ts', import.meta.url))
const madeMaxMs = 250_000

let running: TestStack
let browser: Browser
let watched: WatchedPage
let page: Page

type Alert = {
  alert_id: string
  event_id: string
  created_at: string
  flags: string[]
  entity: { device: { device_id: string }; user?: { user_id: string } }
}
type Listed<T> = { data: T[]; total: number }
type Overview = {
  telemetry: { events: { now: number; before: number } }
  alerts: { raised: { now: number } }
}
type Hour = { accepted: number; decided: number; differences: unknown[] }
type Detail = { history: { actor: string; at: string; to: string }[] }

beforeAll(async () => {
  ;[running, browser] = await Promise.all([
    startStack({ env: { DEMO_HISTORY: undefined } }),
    launchBrowser(),
  ])
  await until(
    'the history is made',
    () => running.output().includes('a week of a simulated fleet is in'),
    madeMaxMs,
  )
  watched = await openPage(browser, { baseURL: running.stack.console })
  page = watched.page
})

afterAll(async () => {
  await browser?.close()
  await running?.discard()
})

const read = <T>(path: string) => admin<T>(running.stack, 'GET', `/tenants/${tenant}${path}`)
const runSql = async (slug: string, sql: string, parameters: Record<string, string>) => {
  const path = `/tenants/${slug}/sql`
  const found = await admin<{ rows: unknown[][] }>(running.stack, 'POST', path, { sql, parameters })
  return found.rows
}
const shown = (count: number) => count.toLocaleString('en')

/** Runs a command as a person would. @returns its exit status and its output */
async function di(...args: string[]): Promise<{ code: number; out: string; error: string }> {
  const env = { ...process.env, DATA_DIR: running.dataDir }
  return promisify(execFile)(process.execPath, [cli, ...args], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, error: stderr }),
    (failed: { code: number; stdout: string; stderr: string }) => ({
      code: failed.code,
      out: failed.stdout,
      error: failed.stderr,
    }),
  )
}

describe('the history of a new data folder', () => {
  it('is in its own tenant: `demo` stays empty', async () => {
    const tenants = await admin<{ data: { tenant_id: string }[] }>(
      running.stack,
      'GET',
      '/tenants?limit=100',
    )
    expect(tenants.data.map(({ tenant_id }) => tenant_id).sort()).toEqual(['demo', tenant])
    const demo = await admin<Overview>(running.stack, 'GET', '/tenants/demo/overview')
    expect(demo.telemetry.events).toEqual({ now: 0, before: 0 })
  })

  it('covers a week, by day and night, up to now', async () => {
    const nowMs = Date.now()
    const from = new Date(nowMs - 7 * dayMs).toISOString()
    const { telemetry } = await read<Overview>(`/overview?from=${from}`)
    expect(telemetry.events.now).toBeGreaterThan(1_500)
    const lastDay = await read<Overview>('/overview')
    expect(lastDay.telemetry.events.now).toBeGreaterThan(150)
    expect(lastDay.telemetry.events.before).toBeGreaterThan(150)
    const { data, total } = await read<Listed<Alert>>('/alerts?limit=200')
    expect(total).toBeGreaterThan(100)
    const days = new Set(data.map(({ created_at: at }) => at.slice(0, 10)))
    expect(days.size).toBeGreaterThanOrEqual(3)
    for (const { created_at: at } of data) expect(Date.parse(at)).toBeLessThan(nowMs)
  })

  it('is consistent: accepted, stored, decided and delivered, hour by hour', async () => {
    const from = new Date(Date.now() - 7 * dayMs).toISOString()
    const hours = await until('replication and reconciliation are done with it', async () => {
      const { data } = await read<{ data: Hour[] }>(`/reconciliation?from=${from}`)
      const isDone = data.every((hour) => hour.decided > 0 && hour.differences.length === 0)
      return data.length > 100 && isDone ? data : null
    })
    expect(hours.filter((hour) => hour.accepted !== hour.decided)).toEqual([])
  })

  it('says of every event where it came from', async () => {
    const sql = `select connection_organization, connection_country, count() from events
      group by all order by 1`
    const rows = await runSql(tenant, sql, {})
    expect(rows.map(([name, country]) => [name, country])).toEqual([
      ['Example Home Broadband', 'BE'],
      ['Example Hosting', 'NL'],
      ['Example Mobile', 'LU'],
      ['Example Privacy VPN', 'CH'],
    ])
    const { data } = await read<Listed<Alert>>('/alerts?country=NL&limit=1')
    const { device } = data[0]!.entity
    const path = `/devices/${encodeURIComponent(device.device_id)}/network`
    const { connection, total } = await read<{ connection: object; total: number }>(path)
    expect(total).toBeGreaterThan(5)
    expect(connection).toMatchObject({
      network: '203.0.113.0/24',
      country: 'NL',
      asn: 64_499,
      organization: 'Example Hosting',
      kinds: ['hosting'],
    })
  })

  it('comes with network data, whose files the console has read', async () => {
    const { code, out } = await di('network', 'status', '--json')
    type Status = { is_on: boolean; data: { file: string; state: string }[] }
    const { is_on: isOn, data } = JSON.parse(out) as Status
    expect([code, isOn]).toEqual([0, true])
    expect(data.map(({ file, state }) => [file, state])).toEqual([
      ['demo.mmdb', 'in_use'],
      ['hosting.txt', 'in_use'],
      ['vpn.txt', 'in_use'],
    ])
  })

  it('has dispositions that analysts set after the alert and before now', async () => {
    const { data } = await read<Listed<Alert>>('/alerts?disposition=CONFIRMED&limit=50')
    expect(data.length).toBeGreaterThan(20)
    for (const { alert_id: id, created_at: raisedAt } of data.slice(0, 10)) {
      const { history } = await admin<Detail>(running.stack, 'GET', `/alerts/${id}`)
      expect(history).toMatchObject([{ to: 'CONFIRMED' }])
      expect(history[0]!.actor).toMatch(/@example\.com$/)
      expect(Date.parse(history[0]!.at)).toBeGreaterThan(Date.parse(raisedAt))
      expect(Date.parse(history[0]!.at)).toBeLessThan(Date.now())
    }
  })
})

/** Titles of empty pages. */
const nothing = [
  ...['This could not be loaded', 'Not known at the moment', 'No flag was raised'],
  ...['No event arrived', 'No events in this time', 'The event has no signals'],
  ...[
    'No policy runs as the shadow',
    'It has not decided any event yet',
    'No other device is linked',
  ],
  ...['No other user is linked', 'No signal was ever detected'],
  ...['No webhook was sent', 'Nothing was delivered yet', 'No alert yet', 'No user was named'],
  ...['No telemetry in this time', 'No signal was detected in this time', 'No alerts'],
  ...['SDKs send nothing that the catalog does not have', 'Nothing happened here yet'],
]

/** An alert whose device and user are linked to others. */
async function findLinked(alerts: readonly Alert[]): Promise<Alert | null> {
  type Linked = { data: unknown[] }
  for (const alert of alerts) {
    const { device, user } = alert.entity
    if (user === undefined) continue
    const ofDevice = await read<Linked>(`/devices/${encodeURIComponent(device.device_id)}/links`)
    if (ofDevice.data.length === 0) continue
    const ofUser = await read<Linked>(`/users/${encodeURIComponent(user.user_id)}/links`)
    if (ofUser.data.length > 0) return alert
  }
  return null
}

describe('the pages of the console', () => {
  it('lead from the link that npm start prints to the overview of the history', async () => {
    const link = /^http:.*\/invite\S*#[\w-]{43}$/m.exec(running.output())?.[0]
    await page.goto(link!)
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.getByLabel('Password').fill('nine blue kettles sing')
    await page.getByRole('button', { name: 'Create the account' }).click()
    await page.waitForURL(`**/t/${tenant}/overview`)
  })

  it('all show some of it', async () => {
    const { data, total } = await read<Listed<Alert>>('/alerts?disposition=CONFIRMED&limit=200')
    const { total: all } = await read<Listed<Alert>>('/alerts?limit=1')
    expect(total).toBeGreaterThan(0)
    const alert = (await findLinked(data))!
    const { device, user } = alert.entity
    const fleet = await read<Listed<{ sdk_version: string }>>('/fleet')
    const seen = JSON.stringify(fleet)
    expect(seen).toContain('3.2.0')
    // The overview's day moves on: the page shows the count that its own request brought. The page
    // that is open asks too.
    await page.goto('about:blank')
    const counted = page.waitForResponse(/\/admin\/.*\/overview(\?|$)/)
    await page.goto(`/t/${tenant}/overview`)
    const { telemetry } = (await (await counted).json()) as Overview
    const pages: [path: string, text: string | RegExp][] = [
      ['overview', shown(telemetry.events.now)],
      ['cases', /^[\d,]+ cases$/],
      ['alerts', `${shown(all)} alerts`],
      [`alerts/${alert.alert_id}`, alert.flags[0]!],
      [`events/${alert.event_id}`, alert.flags[0]!],
      [`devices/${encodeURIComponent(device.device_id)}`, 'Linked devices'],
      [`users/${encodeURIComponent(user!.user_id)}`, 'Linked users'],
      ['policies', 'balanced'],
      ['signals', 'root.su_binary'],
      ['fleet', '3.2.0'],
      ['explore', 'Examples'],
      ['reconciliation', 'agree'],
      ['webhooks', 'delivered'],
    ]
    for (const [path, text] of pages) {
      if (path !== 'overview') await page.goto(`/t/${tenant}/${path}`)
      const main = page.getByRole('main')
      await main.getByText(text).filter({ visible: true }).first().waitFor()
      await settle(page)
      const lines = (await main.innerText()).split('\n')
      expect([path, lines.filter((line) => nothing.includes(line))]).toEqual([path, []])
    }
    expect(watched.faults).toEqual([])
  })
})

describe('di fleet --history', () => {
  it('makes the same history from the same seed, in a new tenant', async () => {
    const make = (slug: string, seed: string) =>
      di('fleet', '--json', '--history', '3', '--devices', '40', '--seed', seed, '--tenant', slug)
    const [one, two, other] = [await make('one', '5'), await make('two', '5'), await make('x', '6')]
    expect([one.code, one.error]).toEqual([0, ''])
    const counts = ({ out }: { out: string }) => {
      const { events, alerts, dispositions, deliveries } = JSON.parse(out) as Record<
        string,
        unknown
      >
      return { events, alerts, dispositions, deliveries }
    }
    expect(counts(two)).toEqual(counts(one))
    expect(counts(other)).not.toEqual(counts(one))
    const { data } = await admin<Listed<Alert>>(running.stack, 'GET', '/tenants/one/alerts?limit=1')
    expect(data).toHaveLength(1)
  })

  it('gives every question of the cookbook rows, and reconciliation agrees', async () => {
    type Question = { name: string; sql: string; parameters: Record<string, string> }
    const size = ['--history', '42', '--devices', '500', '--seed', '7']
    const made = await di('fleet', '--json', ...size, '--tenant', 'weeks')
    expect([made.code, made.error]).toEqual([0, ''])
    const { from, to, events, replays, alerts, dispositions, labels } = JSON.parse(made.out) as {
      from: string
      to: string
      events: number
      replays: number
      alerts: number
      dispositions: number
      labels: number
    }
    expect(labels).toBeGreaterThan(10)
    await until('alerts, dispositions and labels are copied to ClickHouse', async () => {
      const tables = ['alerts', 'dispositions', 'labels']
      const sql = `select ${tables.map((name) => `(select count() from ${name})`).join(', ')}`
      const [counted] = await runSql('weeks', sql, {})
      return String(counted) === String([alerts, dispositions, labels])
    })
    const at = (iso: string) => iso.replace('T', ' ').replace('Z', '')
    const span = { from: at(from), to: at(to) }
    const { data } = await admin<{ data: Question[] }>(running.stack, 'GET', '/sql/cookbook')
    expect(data.length).toBeGreaterThanOrEqual(26)
    const answers = new Map<string, unknown[][]>()
    for (const { name, sql, parameters } of data) {
      answers.set(name.slice(3), await runSql('weeks', sql, { ...parameters, ...span }))
    }
    expect([...answers].filter(([, rows]) => rows.length === 0)).toEqual([])
    // Each question is compared row by row in cookbook.test.ts; here with what was made.
    const sum = (name: string, column: number) =>
      answers.get(name)!.reduce((total, row) => total + Number(row[column]), 0)
    expect(sum('funnel-to-confirmed', 3)).toBe(alerts)
    expect(sum('judging-speed', 1)).toBe(dispositions)
    const [seen] = await runSql(
      'weeks',
      `select uniqExact(device_id), count(),
      uniqExact(device_id, session_id) from events`,
      {},
    )
    expect(seen!.map(Number)).toEqual([
      sum('cohorts-by-first-week', 1),
      events,
      sum('hit-rate-by-day', 1),
    ])
    // A copy is no event, and the phone's next event tells of it.
    const [replayed] = await runSql(
      'weeks',
      `select count(), countIf(has(flags, 'REPLAYED')) from (
         select r.event_id, argMin(e.event_id, e.received_at) as next_id
         from replays as r inner join events as e using (device_id)
         where e.received_at > r.received_at group by r.event_id
       ) as told left join decisions as d on d.event_id = told.next_id`,
      {},
    )
    expect(replays).toBeGreaterThan(5)
    expect(replayed!.map(Number)).toEqual([replays, replays])
    const csv = await di('cookbook', 'run', 'weeks', 'judging-speed', '--csv', '--from', from)
    expect(csv.out.trimEnd().split('\n')).toHaveLength(answers.get('judging-speed')!.length + 1)
    const week = new Date(Date.parse(from) + 7 * dayMs).toISOString()
    const path = `/tenants/weeks/reconciliation?from=${from}&to=${week}`
    const first = await admin<{ data: Hour[] }>(running.stack, 'GET', path)
    expect(first.data.length).toBeGreaterThan(10)
    expect(first.data.filter(({ differences }) => differences.length > 0)).toEqual([])
  })

  it('stops on Ctrl-C, and activity then expires again', async () => {
    const clickhouse = createClickhouse(running.stack.clickhouse, { name: 'test' })
    // Each month with such a row is older than the 35 days that activity is kept.
    const countOld = async () => {
      const query = `select count() from activity
        where tenant_id = 'cut' and received_at < now() - interval 70 day`
      const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
      const [[count] = ['0']] = await result.json<[string]>()
      return Number(count)
    }
    try {
      const size = ['--history', '90', '--devices', '500', '--tenant', 'cut']
      const env = { ...process.env, DATA_DIR: running.dataDir }
      const made = promisify(execFile)(process.execPath, [cli, 'fleet', ...size], { env })
      const ended = expect(made).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining('The history is not complete: it was stopped.'),
      })
      const begun = until('the history has begun', async () => (await countOld()) > 0, madeMaxMs)
      await Promise.all([ended, begun.then(() => made.child.kill('SIGINT'))])
      await until('its old activity has expired', async () => {
        await clickhouse.command({ query: 'optimize table activity final' })
        return (await countOld()) === 0
      })
    } finally {
      await clickhouse.close()
    }
  })

  it('rejects an existing tenant, other options, and anything but a local stack', async () => {
    const exists = await di('fleet', '--history', '1', '--tenant', 'demo')
    expect([exists.code, exists.error]).toEqual([1, expect.stringContaining('tenant_exists')])
    const both = await di('fleet', '--history', '1', '--rate', '5')
    expect([both.code, both.error]).toEqual([1, expect.stringContaining('--history')])
    const env = { ...process.env, DATA_DIR: running.dataDir, CONSOLE_URL: 'http://127.0.0.1:9' }
    const elsewhere = promisify(execFile)(process.execPath, [cli, 'fleet', '--history', '1'], {
      env,
    })
    await expect(elsewhere).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not the console of the local stack'),
    })
  })
})

describeFleetRuns(() => running)
