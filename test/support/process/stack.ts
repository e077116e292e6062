// A complete local stack for tests: the command behind `npm start`, run as a child with its own
// data folder and ports, so that several run side by side.

import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import {
  createLauncher,
  type Exit,
  exitOf,
  isAlive,
  type RunAs,
  sendSignal,
} from '../../../deploy/local/stack/launch.ts'
import { isPortFree } from '../../../deploy/local/stack/ports/ports.ts'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'
import type { ChildName, DemoTenant } from '../../../deploy/local/stack/state-files.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
/** Against a hang only: on a loaded machine a start takes minutes. */
const READY_LIMIT_MS = 580_000

/** stack.json of a stack that runs all its parts itself. */
export type StackFacts = Record<ChildName, string> & {
  /** Where there are several engines. */
  clickhouse_shards?: string[]
  internal: Record<ServiceName, string>
  admin_token: string
  pids: Record<ChildName, number>
  demo: DemoTenant
}

export type TestStack = {
  /** The current stack.json: process ids change when a part is restarted. */
  readonly stack: StackFacts
  dataDir: string
  portBase: number
  /** Milliseconds from the command to its `ready`. */
  readyMs: number
  /** The process that was started: the stack itself, or npm. */
  pid: number
  /** Everything printed so far. */
  output: () => string
  exit: Promise<Exit>
  /** Sends the signal and waits; returns the exit status and the duration. */
  stop: (signal?: NodeJS.Signals) => Promise<Exit & { tookMs: number }>
  /** Sends kill -9 to the process that was started, and to no other. */
  kill9Parent: () => Promise<void>
  /** Sends kill -9 to every process of the stack at once. */
  kill9All: () => Promise<void>
  /** Ends it if it still runs, and removes its data. */
  discard: () => Promise<void>
}

export type StackOptions = {
  portBase?: number
  dataDir?: string
  env?: Record<string, string | undefined>
  /** Options of the command. */
  args?: readonly string[]
  /** Runs `npm start` instead of the command behind it. */
  throughNpm?: boolean
  /** Another user, where the test is root. */
  runAs?: RunAs
}

/**
 * Starts a stack and waits for its `ready`. Throws with everything it printed when none comes.
 */
export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'di-stack-'))
  const portBase = options.portBase ?? (await freePortBase())
  const begun = performance.now()
  const run = spawnStack({ ...options, dataDir, portBase })
  await waitForReady(run)
  const read = () => JSON.parse(readFileSync(join(dataDir, 'stack.json'), 'utf8')) as StackFacts
  const pid = run.child.pid as number
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    const since = performance.now()
    sendSignal(pid, signal)
    return { ...(await run.exit), tookMs: performance.now() - since }
  }
  return {
    get stack() {
      return read()
    },
    dataDir,
    portBase,
    readyMs: performance.now() - begun,
    pid,
    output: run.output,
    exit: run.exit,
    stop,
    kill9Parent: async () => {
      sendSignal(pid, 'SIGKILL')
      await run.exit
    },
    kill9All: async () => {
      const { pids } = read()
      sendSignal(pid, 'SIGKILL')
      for (const part of Object.values(pids)) sendSignal(part, 'SIGKILL')
      await run.exit
    },
    discard: async () => {
      if (run.child.exitCode === null && run.child.signalCode === null) await stop()
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

export type StackRun = { child: ChildProcess; output: () => string; exit: Promise<Exit> }

/** Runs the start command without waiting for anything. */
export function spawnStack(
  options: StackOptions & { dataDir: string; portBase: number },
): StackRun {
  const env: Record<string, string | undefined> = { ...process.env }
  // Variables of the test run itself must not reach the stack.
  for (const name of Object.keys(env)) {
    if (/^(npm_|VITEST|NODE_ENV$|(NATS|POSTGRES|CLICKHOUSE)_(URL|CLUSTER))/.test(name))
      delete env[name]
  }
  const [command, ...args] = options.throughNpm
    ? ['npm', 'start']
    : [process.execPath, 'deploy/local.ts', ...(options.args ?? [])]
  // A separate process group, so that a test can send Ctrl-C to it alone; and if the test run
  // itself is killed, the stack gets a SIGTERM.
  const child = createLauncher({ pathVar: process.env.PATH }).launch({
    command: command as string,
    args,
    cwd: projectDir,
    env: {
      ...env,
      DATA_DIR: options.dataDir,
      PORT_BASE: `${options.portBase}`,
      // The demo history would take CPU from measurements and appear in lists of tenants.
      DEMO_HISTORY: '0',
      ...options.env,
    },
    ...(options.runAs === undefined ? {} : { runAs: options.runAs }),
    orphanSignal: 'SIGTERM',
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8')
    stream?.on('data', (text: string) => {
      printed += text
    })
  }
  return { child, output: () => printed, exit: exitOf(child) }
}

async function waitForReady(run: StackRun): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS
  let ended = false
  void run.exit.then(() => {
    ended = true
  })
  while (!/^started in /m.test(run.output())) {
    if (ended) {
      await sleep(100)
      throw new Error(`the stack ended before it was ready:\n${run.output()}`)
    }
    if (performance.now() > deadline) {
      run.child.kill('SIGTERM')
      throw new Error(`the stack was not ready in ${READY_LIMIT_MS / 1000} s:\n${run.output()}`)
    }
    await sleep(20)
  }
}

/** A base whose ports, the last of which is 12 above it, are all free. */
export async function freePortBase(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    // Above 10,080, to which `fetch` refuses to connect.
    const base = 10_100 + Math.floor(Math.random() * 720) * 13
    const reservation = await reservePort(base + reservedPlace)
    if (reservation === null) continue
    const places = [0, 1, 2, 3, 4, 10, 11, 12]
    const free = await Promise.all(places.map((n) => isPortFree(base + n)))
    if (free.every(Boolean)) return base
    reservation.close()
  }
  throw new Error('no free ports for a stack')
}

/**
 * A place that no process of a stack uses. It is held until this process ends, so that no two
 * stacks that start at the same time choose the same ports.
 */
const reservedPlace = 5

function reservePort(port: number): Promise<Server | null> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(null))
    server.listen(port, '127.0.0.1', () => resolve(server.unref()))
  })
}

/** Waits until none of these processes exists; returns the remaining ones at `limitMs`. */
export async function survivors(pids: number[], limitMs: number): Promise<number[]> {
  const deadline = performance.now() + limitMs
  while (pids.some(isAlive) && performance.now() < deadline) await sleep(20)
  return pids.filter(isAlive)
}
