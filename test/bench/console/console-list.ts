/** An analyst in the list of alerts: keys, filters, and announced new alerts. */
import { randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import { settle } from '../../support/console/browser.ts'
import { admin, ingest, toBody } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import type { TestStack } from '../../support/process/stack.ts'
import type { Figure } from '../report.ts'
import { toSpread } from '../spread.ts'
import { awaitText, countRows, readSeen } from './console-probe.ts'
import { benchTenant } from './console-rows.ts'

const targets = { keyMs: 50, filterMs: 300, rows: 80, newMs: 1_000 }
const keys = 60
const newAlerts = 8
const filters: [label: string, item: string, query: string][] = [
  ['Decision', 'BLOCK', 'decision=BLOCK'],
  ['Disposition', 'Confirmed', 'disposition=CONFIRMED'],
  ['Severity', 'CRITICAL', 'severity=CRITICAL'],
  ['Flag', 'HOOKING_DETECTED', 'flag=HOOKING_DETECTED'],
  ['Flag', 'MANY_USERS_PER_DEVICE', 'flag=MANY_USERS_PER_DEVICE'],
]

export async function measureList(test: TestStack, page: Page): Promise<Figure[]> {
  return [
    ...(await measureKeys(page)),
    ...(await measureFilters(test, page)),
    await measureNews(test, page),
  ]
}

const open = async (page: Page) => {
  await page.goto(`/t/${benchTenant}/alerts`)
  await settle(page)
}

/** Opens one alert after another, as in triage. */
async function measureKeys(page: Page): Promise<Figure[]> {
  await open(page)
  let rows = 0
  for (let n = 0; n < keys; n++) {
    await page.keyboard.press('j')
    await page.waitForTimeout(80)
    rows = Math.max(rows, await countRows(page))
  }
  const { keysMs } = await readSeen(page)
  return [
    figure('triage: key to paint, p50', 'ms', [percentile(keysMs, 0.5)], targets.keyMs),
    figure('triage: key to paint, p99', 'ms', [percentile(keysMs, 0.99)], targets.keyMs),
    figure('triage: rows in the document', '', [rows], targets.rows),
  ]
}

async function measureFilters({ stack }: TestStack, page: Page): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [label, item, query] of filters) {
    const path = `/tenants/${benchTenant}/alerts?limit=1&${query}`
    const { total } = await admin<{ total: number }>(stack, 'GET', path)
    await open(page)
    await page.getByRole('search').getByRole('button', { name: label }).click()
    const shown = awaitText(page, `(^|\\D)${total.toLocaleString('en')} alert`)
    await page.getByRole('menuitemcheckbox', { name: item }).click()
    const { atMs, clickMs } = await shown
    figures.push(figure(`filter ${query}: ${total}`, 'ms', [atMs - clickMs], targets.filterMs))
  }
  return figures
}

const hooked = {
  debugger: { frida_detected: true, native_hooks: true },
  root: { su_binary: true, magisk_detected: true },
}

/** From the creation of an alert to the button with the number of new ones. */
async function measureNews({ stack }: TestStack, page: Page): Promise<Figure> {
  const { hmac_secret: secret } = await admin<{ hmac_secret: string }>(
    stack,
    'POST',
    `/tenants/${benchTenant}/rotate`,
    { hmac: true },
  )
  const times: number[] = []
  for (let n = 0; n < newAlerts; n++) {
    await open(page)
    // The stream of the page is connected a moment after its list.
    await page.waitForTimeout(1_000)
    const shown = awaitText(page, '(^|\\D)1 new')
    const device = `new-${randomBytes(6).toString('hex')}`
    const body = toBody(benchTenant, { device, session: device, signals: hooked })
    await ingest(stack, secret, body)
    const { wallMs } = await shown
    const path = `/tenants/${benchTenant}/alerts?limit=1&device_id=${device}`
    const { data } = await admin<{ data: { created_at: string }[] }>(stack, 'GET', path)
    times.push(wallMs - Date.parse(data[0]!.created_at))
  }
  return figure('alert to "1 new"', 'ms', times, targets.newMs)
}

const figure = (name: string, unit: string, values: readonly number[], atMost: number): Figure => ({
  name,
  unit,
  value: toSpread(values),
  bound: { of: 'value', atMost },
})
