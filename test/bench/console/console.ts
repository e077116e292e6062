/**
 * `npm run bench -- console [--events N] [--alerts N] [--devices N] [--days D] [--rounds N]
 * [--requests N] [--screenshots DIR]`: every page of the console in Chromium, on a whole stack with
 * 10 million events and 100,000 alerts of one tenant. Each page is opened in rounds, plainly and
 * with the CPU slowed four times, and its queries are then sent alone. Then an analyst works in
 * the list of alerts. With `--screenshots` a folder gets each page in both themes and 320 px wide,
 * and a trace for Playwright's viewer.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { launchBrowser, openPage, settle } from '../../support/console/browser.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { toSpread } from '../spread.ts'
import { measureList } from './console-list.ts'
import { addProbe, countRows, readSeen, readWeight } from './console-probe.ts'
import { benchTenant, fillConsole } from './console-rows.ts'

/** The targets of the console, in ms, shares, rows and bytes. */
const targets = {
  paintMs: 500,
  slowPaintMs: 1_500,
  shift: 0.02,
  rows: 80,
  scriptBytes: 190_000,
  styleBytes: 20_000,
}
const slowedTimes = 4
const password = 'nine blue kettles sing'

type Options = { rounds: number; requests: number; screenshots: string | null }

/** Runs it and reports. */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '10000000' },
      alerts: { type: 'string', default: '100000' },
      devices: { type: 'string', default: '1500' },
      days: { type: 'string', default: '60' },
      rounds: { type: 'string', default: '5' },
      requests: { type: 'string', default: '40' },
      screenshots: { type: 'string' },
    },
  })
  const options: Options = {
    rounds: Number(values.rounds),
    requests: Number(values.requests),
    screenshots: values.screenshots ?? null,
  }
  const closing: (() => unknown)[] = []
  try {
    const test = await startStack()
    closing.push(test.discard)
    const startedMs = performance.now()
    const filled = await fillConsole(test, {
      events: Number(values.events),
      alerts: Number(values.alerts),
      devices: Number(values.devices),
      days: Number(values.days),
    })
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    print(`${filled.events} events and ${filled.alerts} alerts in ${seconds} s`)
    const browser = await launchBrowser()
    closing.push(() => browser.close())
    const { figures, checks } = await measure(test, browser, options)
    const clickhouse = createClickhouse(test.stack.clickhouse, { name: 'bench' })
    closing.push(() => clickhouse.close())
    publishReport({
      part: 'console',
      command: ['npm run bench -- console', ...args].join(' '),
      versions: {
        chromium: browser.version(),
        clickhouse: await readClickhouseVersion(clickhouse),
      },
      durability: 'as the local stack comes',
      figures,
      checks,
    })
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

const print = (line: string) => process.stdout.write(`${line}\n`)

async function measure(test: TestStack, browser: Browser, options: Options) {
  const { page, faults } = await openPage(browser, { baseURL: test.stack.console })
  await addProbe(page)
  await signIn(test, page)
  const { screenshots } = options
  if (screenshots !== null) {
    mkdirSync(screenshots, { recursive: true })
    await page.context().tracing.start({ screenshots: true, snapshots: true })
  }
  const figures: Figure[] = [...(await measureWeight(page))]
  for (const [name, path] of await listPages(test)) {
    figures.push(...(await measurePage(test, page, { name, path, ...options })))
    if (screenshots !== null) await shoot(page, join(screenshots, name))
  }
  figures.push(...(await measureList(test, page)))
  if (screenshots !== null) {
    await page.context().tracing.stop({ path: join(screenshots, 'trace.zip') })
  }
  const checks: Check[] = [
    {
      name: 'no page had an error or called another origin',
      ok: faults.length === 0,
      detail: faults.slice(0, 3).join('; ') || 'none',
    },
  ]
  return { figures, checks }
}

async function signIn(test: TestStack, page: Page): Promise<void> {
  const { url } = await admin<{ url: string }>(test.stack, 'POST', '/operators/invitations', {
    email: 'bench@example.com',
    role: 'admin',
  })
  await page.goto(url)
  await page.getByLabel('Your name').fill('Bench')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Create the account' }).click()
  await page.getByRole('button', { name: 'Account of Bench' }).waitFor()
}

/** Each page once, with those of one alert, event, device and user. */
async function listPages({ stack }: TestStack): Promise<[name: string, path: string][]> {
  type Alert = {
    alert_id: string
    event_id: string
    entity: { device: { device_id: string }; user?: { user_id: string } }
  }
  const path = `/tenants/${benchTenant}/alerts?limit=200`
  const { data } = await admin<{ data: Alert[] }>(stack, 'GET', path)
  const { alert_id, event_id, entity } = data.find((one) => one.entity.user !== undefined)!
  const device = encodeURIComponent(entity.device.device_id)
  const user = encodeURIComponent(entity.user!.user_id)
  const own = [
    ...['overview', 'cases', 'alerts', 'policies', 'signals', 'fleet', 'explore'],
    ...['reconciliation', 'webhooks'],
  ]
  return [
    ...own.map((one): [string, string] => [one, `/t/${benchTenant}/${one}`]),
    ['alert', `/t/${benchTenant}/alerts/${alert_id}`],
    ['event', `/t/${benchTenant}/events/${event_id}`],
    ['device', `/t/${benchTenant}/devices/${device}`],
    ['user', `/t/${benchTenant}/users/${user}`],
    ['integration', `/manage/integrations/${benchTenant}`],
    ...['tenants', 'integrations', 'analysts', 'operators', 'audit', 'retention', 'erasure'].map(
      (one): [string, string] => [one, `/manage/${one}`],
    ),
    ['help', '/help'],
  ]
}

async function measureWeight(page: Page): Promise<Figure[]> {
  await page.goto(`/t/${benchTenant}/overview`)
  await settle(page)
  const { js, css } = await readWeight(page)
  return [
    single('first page: JavaScript', 'bytes', js, targets.scriptBytes),
    single('first page: CSS', 'bytes', css, targets.styleBytes),
  ]
}

type PageOptions = Options & { name: string; path: string }

async function measurePage(test: TestStack, page: Page, options: PageOptions): Promise<Figure[]> {
  const { name, rounds, requests } = options
  const plain = await visit(page, options, 1)
  const slowed = await visit(page, options, slowedTimes)
  const shift = Math.max(...plain.shifts, ...slowed.shifts)
  const figures: Figure[] = [
    of(`${name}: largest paint`, 'ms', plain.paintsMs, targets.paintMs),
    of(`${name}: the same, CPU slowed 4 times`, 'ms', slowed.paintsMs, targets.slowPaintMs),
    single(`${name}: layout shift`, '', shift, targets.shift),
    single(`${name}: rows in the document`, '', plain.rows, targets.rows),
  ]
  for (const path of plain.calls) {
    const times: number[] = []
    for (let n = 0; n < requests; n++) {
      const startedMs = performance.now()
      await admin(test.stack, 'GET', path)
      times.push(performance.now() - startedMs)
    }
    const shown = path.split('?')[0]!.replace(`/tenants/${benchTenant}`, '').slice(0, 40) || '/'
    figures.push(single(`${name}: ${shown}: p50`, 'ms', percentile(times, 0.5)))
    figures.push(single(`${name}: ${shown}: p99`, 'ms', percentile(times, 0.99)))
  }
  print(`${name}: ${rounds} rounds, ${plain.calls.length} queries`)
  return figures
}

type Visited = { paintsMs: number[]; shifts: number[]; rows: number; calls: string[] }

/** Opens a page in rounds. @param slowed how many times slower its CPU is */
async function visit(page: Page, { path, rounds }: PageOptions, slowed: number): Promise<Visited> {
  const calls = new Set<string>()
  const listen = (request: { url: () => string; method: () => string }) => {
    const { pathname, search } = new URL(request.url())
    const own = pathname.replace(/^\/admin\/v1/, '')
    // A stream has no end, and the session is not the tenant's data.
    const isData = own !== pathname && !/stream$|session|openapi/.test(own)
    if (request.method() === 'GET' && isData) calls.add(own + search)
  }
  page.on('request', listen)
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowed })
  const visited: Visited = { paintsMs: [], shifts: [], rows: 0, calls: [] }
  for (let round = 0; round < rounds; round++) {
    await page.goto(path)
    await settle(page)
    await page.waitForTimeout(300)
    const { paintMs, shift } = await readSeen(page)
    visited.paintsMs.push(paintMs)
    visited.shifts.push(shift)
    visited.rows = Math.max(visited.rows, await countRows(page))
  }
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await cdp.detach()
  page.off('request', listen)
  return { ...visited, calls: [...calls].slice(0, 20) }
}

/** Opens the page anew for each picture, as a person opens it. */
async function shoot(page: Page, file: string): Promise<void> {
  const before = page.viewportSize()
  const take = async (name: string) => {
    await page.reload()
    await settle(page)
    await page.screenshot({ path: `${file}-${name}.png` })
  }
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    await take(colorScheme)
  }
  await page.setViewportSize({ width: 320, height: 640 })
  await take('320')
  if (before !== null) await page.setViewportSize(before)
}

const of = (name: string, unit: string, values: readonly number[], atMost?: number): Figure => ({
  name,
  unit,
  value: toSpread(values),
  ...(atMost === undefined ? {} : { bound: { of: 'value' as const, atMost } }),
})

const single = (name: string, unit: string, value: number, atMost?: number): Figure =>
  of(name, unit, [value], atMost)
