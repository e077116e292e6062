/**
 * The real delivery process as a child, to be killed and started again.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type DeliveryProcess = {
  /** Starts it, and waits for nothing. */
  start: () => void
  kill: () => Promise<void>
  /** Whether it ended though nobody killed it. */
  hasFallen: () => boolean
  /** The last it said. */
  output: () => string
}

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** Kills a child that still runs, and waits for its end. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

const outputCharactersMax = 4_000

/**
 * Starts the delivery process as the stack runs it, and does not wait until it is ready.
 * @param env its settings
 */
export function startDelivery(env: Record<string, string>): DeliveryProcess {
  let output = ''
  const launch = () => {
    const child = spawn(process.execPath, ['services/delivery/main.ts'], {
      cwd: projectDir,
      env: { PATH: process.env.PATH, PARENT_PID: String(process.pid), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output = (output + chunk).slice(-outputCharactersMax)
      })
    }
    return child
  }
  let child = launch()
  return {
    start: () => {
      child = launch()
    },
    kill: () => endChild(child),
    hasFallen: () => child.exitCode !== null || ![null, 'SIGKILL'].includes(child.signalCode),
    output: () => output,
  }
}
