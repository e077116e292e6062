/**
 * Processes under measurement: a service's own `main.ts` as production runs it, children of the
 * benchmark that answer messages, and the resource usage of any process, read from the system.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { mallocEnv, nodeOptions } from '../../deploy/local/stack/services.ts'
import { withOwnKeys } from '../support/process/own-keys.ts'
import { chooseAddresses } from '../support/servers/service-addresses.ts'

const projectDir = fileURLToPath(new URL('../..', import.meta.url))
const readyLimitMs = 30_000

export type MeasuredService = {
  pid: number
  /** Its public URL. */
  url: string
  /** Of `/readyz` and `/metrics`. */
  internalUrl: string
  /** Sends SIGTERM and waits for its end. */
  stop: () => Promise<void>
}

/**
 * Starts `services/NAME/main.ts` with this environment and waits until `/readyz` answers 200. Its
 * log is printed unchanged: `LOG_LEVEL` is `warn` unless the environment sets it. It gets the
 * options of Node that it has in production; the variable `BENCH_NODE_OPTIONS` adds others, for
 * profiles.
 * @param env its settings; it gets free ports unless its listen variable is among them
 * @param options further options of Node
 * @throws when it ends or is not ready within 30 s
 */
export async function startMeasured(
  name: 'ingest' | 'scorer' | 'api' | 'delivery' | 'console',
  env: Record<string, string>,
  options: readonly string[] = [],
): Promise<MeasuredService> {
  const addresses = await chooseAddresses(name)
  const listen = env[`${name.toUpperCase()}_LISTEN`]
  const url = listen === undefined ? addresses.url : `http://${listen}`
  const { internalUrl } = addresses
  const more = process.env.BENCH_NODE_OPTIONS?.split(' ') ?? []
  const child = spawn(
    process.execPath,
    [...nodeOptions[name], ...options, ...more, `services/${name}/main.ts`],
    {
      cwd: projectDir,
      env: {
        PATH: process.env.PATH,
        ...mallocEnv,
        LOG_LEVEL: 'warn',
        PARENT_PID: String(process.pid),
        ...addresses.env,
        ...withOwnKeys(name, env),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  createInterface({ input: child.stdout! }).on('line', (line) => process.stdout.write(`${line}\n`))
  const limitMs = performance.now() + readyLimitMs
  while (!(await isReady(internalUrl))) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`)
    if (performance.now() > limitMs) throw new Error(`${name} is not ready`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    pid: child.pid!,
    url,
    internalUrl,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).status === 200
  } catch {
    return false
  }
}

/** A child that answers each message with one message. */
export type BenchChild = {
  child: ChildProcess
  request: <T>(message: unknown) => Promise<T>
  stop: () => void
}

/**
 * Forks a module beside this one that sends one message when it is ready.
 * @returns the child and that first message
 */
export async function forkChild(file: string): Promise<{ worker: BenchChild; first: unknown }> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), { serialization: 'advanced' })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${file} ended with ${code}`)
  })
  ended.catch(() => undefined)
  const receive = async <T>() => {
    const [answer] = await Promise.race([once(child, 'message'), ended])
    return answer as T
  }
  const first = await receive<unknown>()
  const request = <T>(message: unknown) => {
    child.send(message as object)
    return receive<T>()
  }
  return { worker: { child, request, stop: () => child.kill() }, first }
}

/** CPU seconds, user and system, that a process has used, optionally with its children. */
export function readCpuSeconds(pid: number, withChildren = false): number {
  return addUp(pid, withChildren, readTicks) / 100
}

/** MB (10^6 bytes) of a process: its own memory, and its share of what several processes use. */
export function readPssMb(pid: number, withChildren = false): number {
  return addUp(pid, withChildren, readPssKib) * (1_024 / 1e6)
}

function addUp(pid: number, withChildren: boolean, read: (pid: number) => number): number {
  let total = read(pid)
  if (!withChildren) return total
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  for (const child of children === '' ? [] : children.split(' ')) {
    try {
      total += read(Number(child))
    } catch {
      // The process has ended.
    }
  }
  return total
}

function readPssKib(pid: number): number {
  const [, kib] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
  return Number(kib)
}

function readTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

/** MB (10^6 bytes) that a process uses now, and its maximum so far. */
export function readMemoryMb(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (field: string) => {
    const [, kib] = status.match(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm')) ?? []
    return (Number(kib) * 1_024) / 1e6
  }
  return { now: read('VmRSS'), peak: read('VmHWM') }
}
