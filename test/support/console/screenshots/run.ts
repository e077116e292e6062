/**
 * `npm run screenshots -- --out DIR [--only REGEX] [--states light,dark,...] [--stack FOLDER]`:
 * every page of the console as a person may meet it, and a table of what can be measured on it.
 * Each page is opened with data in both themes and at several widths, of an empty tenant, with
 * answers that do not come and with answers of 503; then each button and tab that changes nothing
 * is tried once. Contact sheets show several pictures at once.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { admin } from '../../http/tenant-client.ts'
import { type StackFacts, startStack } from '../../process/stack.ts'
import { until } from '../../process/until.ts'
import { findViolations } from '../accessibility.ts'
import { launchBrowser, openPage } from '../browser.ts'
import {
  findCutTexts,
  findOutside,
  isWaiting,
  readHeight,
  readShift,
  watchShifts,
} from './measures.ts'
import { openOnce } from './openings.ts'
import { listPlaces, type Place } from './places.ts'
import { type Picture, writeSheets } from './sheets.ts'
import { emptyAnswers, failAnswers, type Hold, holdAnswers, refuseChanges } from './states.ts'

const tenant = 'demo-fleet'
const emptyTenant = 'demo'
const wide = { width: 1_280, height: 720 }
const narrow = { width: 320, height: 640 }
/** A window of 1,280 px at 200 %. */
const zoomed = { width: 640, height: 360 }
/** Pictures are at most so high. */
const heightMost = 2_600
/** A page that has not settled by then is shown as it is, and said so. */
const settleMs = 8_000
/** After this a page says that it waits. */
const slowMs = 5_100

const allStates = ['light', 'dark', '320', 'zoom', 'empty', 'slow', 'failed', 'opened']

type Finding = { name: string; state: string; text: string }

const print = (line: string) => process.stdout.write(`${line}\n`)

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    only: { type: 'string', default: '' },
    states: { type: 'string', default: allStates.join(',') },
    stack: { type: 'string' },
  },
})
if (values.out === undefined) throw new Error('say where to: --out DIR')
const out = values.out
const states = values.states.split(',')
const wrong = states.find((state) => !allStates.includes(state))
if (wrong !== undefined) throw new Error(`there is no state ${wrong}: ${allStates.join(', ')}`)

const readStack = (folder: string): StackFacts =>
  JSON.parse(readFileSync(join(folder, 'stack.json'), 'utf8')) as StackFacts

const findings: Finding[] = []
const pictures = new Map<string, Picture[]>()
const closing: (() => unknown)[] = []
try {
  mkdirSync(out, { recursive: true })
  const stack = values.stack === undefined ? await startDemo() : readStack(values.stack)
  const browser = await launchBrowser()
  closing.push(() => browser.close())
  await shootAll(stack, browser)
} finally {
  for (const close of closing.reverse()) await close()
}

/** A stack with the history that `npm start` makes. */
async function startDemo(): Promise<StackFacts> {
  const test = await startStack({ env: { DEMO_HISTORY: '1' } })
  closing.push(test.discard)
  await until('the history is there', () => /of a simulated fleet/.test(test.output()), 600_000)
  return test.stack
}

async function shootAll(stack: StackFacts, browser: Browser): Promise<void> {
  const { page, faults } = await openPage(browser, { baseURL: stack.console, viewport: wide })
  page.setDefaultTimeout(settleMs)
  await watchShifts(page)
  await signIn(stack, page)
  const places = await listPlaces(stack, tenant, emptyTenant)
  for (const place of places.filter(({ name }) => new RegExp(values.only).test(name))) {
    const begunMs = performance.now()
    await shootPlace(page, place)
    for (const text of faults.splice(0)) findings.push({ name: place.name, state: 'any', text })
    print(`${place.name}: ${Math.round((performance.now() - begunMs) / 100) / 10} s`)
  }
  await page.context().close()
  const sheetContext = await browser.newContext()
  const sheet = await sheetContext.newPage()
  for (const [kind, of] of pictures) {
    const across = kind.includes('320') ? 6 : 3
    await writeSheets(sheet, out, { kind, pictures: of, across })
  }
  await sheetContext.close()
  const lines = findings.map(
    ({ name, state, text }) => `${name.padEnd(28)} ${state.padEnd(10)} ${text}`,
  )
  writeFileSync(join(out, 'findings.txt'), lines.join('\n'))
  print(lines.length === 0 ? 'nothing was found' : lines.join('\n'))
}

async function signIn(stack: StackFacts, page: Page): Promise<void> {
  const { url } = await admin<{ url: string }>(stack, 'POST', '/operators/invitations', {
    email: `looks-${Date.now()}@example.com`,
    role: 'admin',
  })
  await page.goto(url)
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByLabel('Password').fill('nine blue kettles sing')
  await page.getByRole('button', { name: 'Create the account' }).click()
  await page.getByRole('button', { name: 'Account of Ada Lovelace' }).waitFor()
  await refuseChanges(page)
}

async function shootPlace(page: Page, place: Place): Promise<void> {
  const { name, address, empty } = place
  const note = (state: string, text: string) => void findings.push({ name, state, text })
  const wants = (state: string) => states.includes(state)
  const isFull = ['light', 'dark', '320', 'zoom', 'opened'].some(wants)
  if (isFull) {
    await open(page, address, (text) => note('light', text))
    await judge(page, 'light', note)
    if (wants('light')) await shoot(page, name, 'light')
    if (wants('dark')) await shoot(page, name, 'dark')
    if (wants('320')) {
      await shoot(page, name, '320', narrow)
      await shoot(page, name, '320-dark', narrow)
      await measureNarrow(page, '320', note)
    }
    if (wants('zoom')) await shoot(page, name, 'zoom', zoomed)
    if (wants('opened')) {
      await openOnce(page, async (what) => {
        await shoot(page, `${name}: ${what}`, 'opened')
        await judge(page, `opened: ${what}`, note)
        await shoot(page, `${name}: ${what}`, 'opened-320', narrow)
        await measureNarrow(page, `opened: ${what}`, note)
      })
    }
  }
  if (wants('empty')) {
    const hold = empty === null ? await emptyAnswers(page) : null
    await open(page, empty ?? address, (text) => note('empty', text))
    await shootState(page, name, 'empty', note)
    await hold?.release()
    // Pages of no tenant are about the one before.
    await page.evaluate(`sessionStorage.setItem('di.tenant', '${tenant}')`)
  }
  if (wants('slow')) await shootWaiting(page, place, 'slow', holdAnswers, note)
  if (wants('failed')) await shootWaiting(page, place, 'failed', failAnswers, note)
}

type Note = (state: string, text: string) => void

async function shootState(page: Page, name: string, state: string, note: Note): Promise<void> {
  await judge(page, state, note)
  await shoot(page, name, state)
  await shoot(page, name, `${state}-320`, narrow)
  await measureNarrow(page, state, note)
}

/** The page's clock is set forward, so that nobody waits for its time limits. */
async function shootWaiting(
  page: Page,
  { name, address }: Place,
  state: string,
  hold: (page: Page) => Promise<Hold>,
  note: Note,
): Promise<void> {
  // A page of its own: a clock that was installed stays.
  const own = await page.context().newPage()
  try {
    await own.setViewportSize(wide)
    own.setDefaultTimeout(settleMs)
    await own.clock.install()
    const held = await hold(own)
    await own.goto(address)
    await own.getByRole('main').waitFor()
    await own.evaluate('new Promise((done) => requestAnimationFrame(() => done()))')
    if (state === 'slow') await shoot(own, name, 'loading')
    const said = own.getByText(state === 'slow' ? /has not answered/ : /could not be loaded/)
    // An answer that fails is asked for again first, twice.
    for (let n = 0; n < 8 && (await said.count()) === 0; n++) {
      await own.clock.fastForward(slowMs)
      await own.evaluate('new Promise((done) => requestAnimationFrame(() => done()))')
      await pause(50)
    }
    if ((await said.count()) === 0 && (await isWaiting(own))) note(state, 'does not say so')
    await shootState(own, name, state, note)
    await held.release()
  } catch (error) {
    note(state, String(error).slice(0, 120))
  } finally {
    await own.close()
  }
}

async function open(page: Page, address: string, note: (text: string) => void): Promise<void> {
  await page.setViewportSize(wide)
  await page.goto(address)
  const busy = page.getByRole('main').locator('.skeleton, [aria-busy=true]').first()
  await page
    .getByRole('main')
    .waitFor()
    .then(() => page.waitForLoadState('load'))
    .then(() => page.evaluate('new Promise((done) => setTimeout(done, 250))'))
    .then(() => busy.waitFor({ state: 'detached' }))
    .catch(() => note('does not settle'))
  const { shift, moved } = await readShift(page)
  if (shift > 0.02) note(`layout shift ${shift.toFixed(3)}: ${moved}`)
}

async function judge(page: Page, state: string, note: Note): Promise<void> {
  for (const violation of await findViolations(page)) note(state, violation)
  for (const text of await findCutTexts(page)) note(state, `cut: ${text}`)
  for (const html of await findOutside(page)) note(state, `outside: ${html}`)
}

async function measureNarrow(page: Page, state: string, note: Note): Promise<void> {
  await page.setViewportSize(narrow)
  const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  const inMain = await page.evaluate(
    `(({ scrollWidth, clientWidth } = { scrollWidth: 0, clientWidth: 0 }) => scrollWidth - clientWidth)
      (document.getElementById('main') ?? undefined)`,
  )
  if (Number(over) > 0) note(state, `320 px: ${over} px too wide`)
  if (Number(inMain) > 0) note(state, `320 px: the page is ${inMain} px too wide`)
  for (const text of await findCutTexts(page)) note(state, `320 px: cut: ${text}`)
  for (const html of await findOutside(page)) note(state, `320 px: outside: ${html}`)
  await page.setViewportSize(wide)
}

/** A picture of the whole page, whose height the window takes. */
async function shoot(page: Page, name: string, kind: string, size = wide): Promise<void> {
  await page.emulateMedia({ colorScheme: kind.endsWith('dark') ? 'dark' : 'light' })
  await page.setViewportSize(size)
  const height = Math.min(heightMost, Math.max(size.height, await readHeight(page)))
  await page.setViewportSize({ width: size.width, height })
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))')
  const file = `${name.replace(/\W+/g, '-')}-${kind}.png`
  await page.screenshot({ path: join(out, file), animations: 'disabled' })
  pictures.set(kind, [...(pictures.get(kind) ?? []), { file, name }])
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(wide)
}
