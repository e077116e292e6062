/** A service as a separate process: started, signalled, killed and started again. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'
import { chooseAddresses } from '../servers/service-addresses.ts'
import { nodeEnv } from './node-env.ts'
import { withOwnKeys } from './own-keys.ts'
import { until } from './until.ts'

export type ProcessEnd = { code: number | null; signal: NodeJS.Signals | null; tookMs: number }

export type ServiceProcess = {
  name: ServiceName
  url: string
  port: number
  /** Serves `/readyz` and `/metrics`. */
  internalUrl: string
  /** Starts it and returns at once. */
  launch: () => void
  /** Starts it and waits until it is ready. */
  start: () => Promise<void>
  isReady: () => Promise<boolean>
  isAlive: () => boolean
  /** The system's id of the running process. */
  pid: () => number
  signal: (signal: NodeJS.Signals) => void
  /** SIGTERM, and SIGKILL after 15 s. */
  terminate: () => Promise<ProcessEnd>
  kill: () => Promise<void>
  readMetrics: () => Promise<string>
  /** The last 4,000 characters of its output. */
  output: () => string
}

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const graceMs = 15_000
/** A start takes a second; a busy machine needs longer. */
const readyLimitMs = 120_000
const outputCharactersMax = 4_000

/** Runs a program of `services/` with only these variables. It ends with this process. */
export function spawnService(
  program: string,
  env: Record<string, string>,
  nodeOptions: readonly string[] = [],
  args: readonly string[] = [],
): ChildProcess {
  return spawn(process.execPath, [...nodeOptions, `services/${program}`, ...args], {
    cwd: projectDir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...nodeEnv(), PARENT_PID: String(process.pid), ...env },
  })
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** Sends SIGKILL unless it has ended, and waits for its end. */
export async function killChild(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Chooses its addresses; `start` or `launch` runs it. */
export async function createServiceProcess(
  name: ServiceName,
  env: Record<string, string>,
  nodeOptions: readonly string[] = [],
): Promise<ServiceProcess> {
  const { url, internalUrl, env: listen } = await chooseAddresses(name)
  let child: ChildProcess | null = null
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk).slice(-outputCharactersMax)
  }
  const launch = () => {
    child = spawnService(`${name}/main.ts`, { ...withOwnKeys(name, env), ...listen }, nodeOptions)
    child.stdout!.on('data', keep)
    child.stderr!.on('data', keep)
  }
  const isAlive = () => child !== null && !hasEnded(child)
  const askReadiness = async (): Promise<true> => {
    if (!isAlive()) throw new Error(`${name} ended at its start: ${output}`)
    const answer = await fetch(`${internalUrl}/readyz`, { signal: AbortSignal.timeout(5_000) })
    if (!answer.ok) throw new Error(`${await answer.text()} ${output}`)
    return true
  }
  return {
    name,
    url,
    port: Number(new URL(url).port),
    internalUrl,
    launch,
    start: async () => {
      launch()
      await until(`${name} is ready`, askReadiness, readyLimitMs)
    },
    isReady: () =>
      fetch(`${internalUrl}/readyz`, { signal: AbortSignal.timeout(1_000) }).then(
        (response) => response.ok,
        () => false,
      ),
    isAlive,
    pid: () => child!.pid!,
    signal: (signal) => child?.kill(signal),
    terminate: async () => {
      if (child === null || hasEnded(child)) {
        return { code: child?.exitCode ?? null, signal: child?.signalCode ?? null, tookMs: 0 }
      }
      const ending = child
      const startMs = performance.now()
      const timer = setTimeout(() => ending.kill('SIGKILL'), graceMs)
      const ended = once(ending, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
      ending.kill('SIGTERM')
      const [code, signal] = await ended
      clearTimeout(timer)
      return { code, signal, tookMs: performance.now() - startMs }
    },
    kill: async () => {
      if (child !== null) await killChild(child)
    },
    readMetrics: async () => (await fetch(`${internalUrl}/metrics`)).text(),
    output: () => output,
  }
}
