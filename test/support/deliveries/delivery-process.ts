/** The delivery process as a child that tests kill and start again. */
import type { ChildProcess } from 'node:child_process'
import { withOwnKeys } from '../process/own-keys.ts'
import { killChild, spawnService } from '../process/service-process.ts'

export type DeliveryProcess = {
  /** Starts it and returns at once. */
  start: () => void
  kill: () => Promise<void>
  /** Whether it ended without a kill. */
  hasEndedByItself: () => boolean
  /** The last 4,000 characters of its output. */
  output: () => string
}

const outputCharactersMax = 4_000

/**
 * Starts the delivery process and returns before it is ready.
 * @param env its settings
 */
export function startDelivery(env: Record<string, string>): DeliveryProcess {
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk).slice(-outputCharactersMax)
  }
  const launch = (): ChildProcess => {
    const child = spawnService('delivery/main.ts', withOwnKeys('delivery', env))
    child.stdout!.on('data', keep)
    child.stderr!.on('data', keep)
    return child
  }
  let child = launch()
  return {
    start: () => {
      child = launch()
    },
    kill: () => killChild(child),
    hasEndedByItself: () =>
      child.exitCode !== null || ![null, 'SIGKILL'].includes(child.signalCode),
    output: () => output,
  }
}
