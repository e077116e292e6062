// Runs the stack at a terminal: shows progress, prints the addresses and example commands, and
// stops the stack in order on Ctrl-C, SIGTERM, a closed terminal or the end of npm.

import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

import { demoCommands } from './demo-tenant.ts'
import { isAlive, startToken } from './stack/launch.ts'
import { createScreen, type Screen, withoutPassword } from './stack/screen.ts'
import {
  type Env,
  type LocalSettings,
  readSettings,
  SERVER_NAMES,
  SERVICE_NAMES,
  StartError,
} from './stack/settings.ts'
import { type RunningStack, startStack } from './stack/stack.ts'

/** npm forwards the Ctrl-C that the terminal has already sent, so one press is two signals. */
const SAME_PRESS_MS = 1_000
const PARENT_CHECK_MS = 250

/**
 * Runs until the stack stops. Returns the exit status: 0 after a stop, 1 after a failed start.
 */
export async function runInTerminal(options: {
  env: Env
  args?: readonly string[]
  projectDir: string
  servicesDir?: string
  version: string
}): Promise<number> {
  const since = performance.now()
  const screen = createScreen(process.stdout)
  process.stderr.on('error', () => undefined)
  const stop = handleStop(screen, options.env)
  try {
    const settings = readSettings(options)
    const shown = relative(process.cwd(), settings.dataDir) || settings.dataDir
    const where = shown.startsWith('..') ? settings.dataDir : shown
    screen.line(
      `device-intelligence ${options.version}, node ${process.versions.node}, data in ${where}`,
    )
    const stack = await startStack({ settings, screen, signal: stop.signal, onStoppable: stop.use })
    printReady(screen, stack, settings, where)
    screen.line(`started in ${((performance.now() - since) / 1000).toFixed(1)} s, Ctrl-C stops it`)
    stack.makeHistory()
    await stop.requested
  } catch (error) {
    if (!stop.signal.aborted) return reportFailure(error)
  }
  await stop.done()
  return 0
}

function reportFailure(error: unknown): number {
  const isStartError = error instanceof StartError
  const text = isStartError ? error.message : error instanceof Error ? error.stack : String(error)
  process.stderr.write(`not started: ${text}\n`)
  return 1
}

function printReady(screen: Screen, stack: RunningStack, settings: LocalSettings, where: string) {
  screen.line('ready')
  for (const name of SERVICE_NAMES) screen.note(name, stack.urls[name])
  for (const name of SERVER_NAMES) {
    const url = stack.urls[name]
    screen.note(name, settings.external[name] === undefined ? url : withoutPassword(url))
  }
  stack.shardUrls.forEach((url, at) => {
    screen.note('shard', `${at + 1} of ${stack.shardUrls.length} of clickhouse: ${url}`)
  })
  if (stack.analystsUrl !== null) {
    screen.note('analysts', `${stack.analystsUrl}, the views of one tenant each, but no wall:`)
    screen.note('', 'SQL of this engine can read the rows of every tenant')
  }
  if (stack.firstSignIn !== null) {
    const { url, email, expiresAt } = stack.firstSignIn
    screen.line()
    screen.line(`open the console as its first administrator, ${email}, by this link:`)
    screen.line(url)
    screen.line(`it works once, until ${expiresAt.slice(0, 16).replace('T', ' ')}Z`)
    screen.line()
  }
  if (stack.newDemo === null) {
    screen.line(`the demo tenant's credentials are in ${where}/stack.json`)
    return
  }
  const demo = stack.newDemo
  screen.line()
  screen.line('the credentials of a sandbox tenant, also in stack.json:')
  for (const [name, value] of Object.entries(demo)) screen.note('demo', `${name} ${value}`)
  const commands = demoCommands(demo, stack.urls)
  screen.line()
  screen.line('send signed telemetry:')
  screen.line(commands.send)
  screen.line()
  screen.line("read the device's history:")
  screen.line(commands.read)
  screen.line()
}

type StopHandle = {
  /** Aborted when a stop is requested. */
  signal: AbortSignal
  requested: Promise<void>
  use: (stack: Pick<RunningStack, 'stop' | 'kill'>) => void
  /** Resolves when everything has ended. */
  done: () => Promise<void>
}

function handleStop(screen: Screen, env: Env): StopHandle {
  const abort = new AbortController()
  const requested = Promise.withResolvers<void>()
  let stack: Pick<RunningStack, 'stop' | 'kill'> | undefined
  let requestedAt = 0
  let hurried = false

  function request(reason: string, inHurry: boolean): void {
    if (abort.signal.aborted) {
      if (performance.now() - requestedAt < SAME_PRESS_MS) return
      screen.line(`${reason} again: killing everything`)
      stack?.kill()
      return
    }
    requestedAt = performance.now()
    hurried = inHurry
    screen.line(`${reason}: stopping`)
    abort.abort()
    void stack?.stop({ hurried })
    requested.resolve()
  }

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => request(name, false))
  }
  if (env.npm_lifecycle_event) watchNpm(() => request('npm has gone', true))
  return {
    signal: abort.signal,
    requested: requested.promise,
    use: (given) => {
      stack = given
      if (abort.signal.aborted) void stack.stop({ hurried })
    },
    done: async () => {
      await stack?.stop({ hurried })
      const seconds = ((performance.now() - requestedAt) / 1000).toFixed(1)
      screen.line(`stopped in ${seconds} s`)
    },
  }
}

/**
 * Calls `gone` when the parent npm dies, which can happen without a forwarded signal. Some shells
 * stay between npm and this process, so the parent of a shell is watched as well.
 */
function watchNpm(gone: () => void): void {
  const watched = [{ pid: process.ppid, started: startToken(process.ppid) }]
  const above = shellParent(process.ppid)
  if (above !== null) watched.push({ pid: above, started: startToken(above) })
  const timer = setInterval(() => {
    const lost = watched.some((one) => !isAlive(one.pid) || startToken(one.pid) !== one.started)
    if (!lost && process.ppid === watched[0]?.pid) return
    clearInterval(timer)
    gone()
  }, PARENT_CHECK_MS)
  timer.unref()
}

function shellParent(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const match = /^\d+ \((\w+)\) \S (\d+)/.exec(stat)
    return match && /^(ba|da|z)?sh$/.test(match[1] ?? '') ? Number(match[2]) : null
  } catch {
    return null
  }
}
