// The browser of the console's tests: `CHROME_PATH`, else an installed Chrome or Chromium, else the
// one from npm, which is unpacked once. A context records forbidden behaviour of a page: a request
// to another origin, a violation of the content security policy, or an uncaught error.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const names = ['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser', 'chrome']
const macChrome = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
/** Against a hang only: beside other work a start takes minutes. */
const timeout = 580_000
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** Starts the browser. @throws when `CHROME_PATH` is no browser */
export async function launchBrowser(): Promise<Browser> {
  const { CHROME_PATH: chosen } = process.env
  if (chosen && !existsSync(chosen)) throw new Error(`CHROME_PATH names no file: ${chosen}`)
  const installed = chosen || findInstalled()
  const args = ['--no-sandbox', '--disable-gpu']
  if (installed !== undefined) return chromium.launch({ executablePath: installed, args, timeout })
  const unpacked = await unpackBrowser()
  const env = {
    ...(process.env as Record<string, string>),
    FONTCONFIG_PATH: join(unpacked, 'fonts'),
    LD_LIBRARY_PATH: join(unpacked, 'al2023', 'lib'),
  }
  const executablePath = join(unpacked, 'chromium')
  return chromium.launch({ executablePath, args: [...args, '--no-zygote'], env, timeout })
}

function findInstalled(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const places = folders.flatMap((folder) => names.map((name) => join(folder, name)))
  return [...places, macChrome].find((place) => existsSync(place))
}

/** Unpacks the browser of npm with the libraries and fonts that it needs; returns its folder. */
async function unpackBrowser(): Promise<string> {
  const packed = join(projectDir, 'node_modules/@sparticuz/chromium')
  const { version } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as {
    version: string
  }
  const folder = join(projectDir, 'node_modules/.cache', `chromium-${version}`)
  if (existsSync(folder)) return folder
  const { inflate } = await import('@sparticuz/chromium')
  const part = `${folder}-${process.pid}`
  mkdirSync(part, { recursive: true })
  const before = process.env.TMPDIR
  // It unpacks to the temporary folder.
  process.env.TMPDIR = part
  try {
    for (const name of ['chromium.br', 'fonts.tar.br', 'swiftshader.tar.br', 'al2023.tar.br']) {
      await inflate(join(packed, 'bin', name))
    }
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
  // Its own file names folders of another machine, and without any font the browser ends at once.
  const fonts = join(folder, 'fonts')
  writeFileSync(
    join(part, 'fonts', 'fonts.conf'),
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${fonts}</dir><cachedir>${fonts}-cache</cachedir></fontconfig>
`,
  )
  try {
    renameSync(part, folder)
  } catch (error) {
    // Another file of the run was faster.
    if (!existsSync(folder)) throw error
    rmSync(part, { recursive: true })
  }
  return folder
}

export type WatchedPage = {
  page: Page
  /** Faults so far: other origins, refusals of the browser, uncaught errors. */
  faults: string[]
}

/** Opens a signed-out page in a new context. */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions & { baseURL: string },
): Promise<WatchedPage> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  context.setDefaultTimeout(240_000)
  const page = await context.newPage()
  const faults: string[] = []
  const { origin } = new URL(options.baseURL)
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`asked ${request.url()}`)
  })
  page.on('pageerror', (error) => faults.push(`threw ${error.message}`))
  page.on('console', (message) => {
    // The browser itself logs a refused call, which some tests cause on purpose.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
      faults.push(`logged ${message.text()}`)
    }
  })
  return { page, faults }
}

/** Waits until the page has loaded its content: no part is a skeleton or busy. */
export async function settle(page: Page): Promise<void> {
  const main = page.getByRole('main')
  await main.waitFor()
  await main.locator('.skeleton, [aria-busy=true]').first().waitFor({ state: 'detached' })
}
