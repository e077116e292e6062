// Waits until a child is ready, or throws as soon as it has exited.

import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

const PAUSE_MS = 20

/**
 * Polls `isReady` until it returns true. Throws when the child exits first or after `limitMs`.
 */
export async function awaitReady(options: {
  name: string
  child: ChildProcess
  isReady: () => Promise<boolean>
  limitMs: number
  signal?: AbortSignal | undefined
}): Promise<void> {
  const { child, name } = options
  let failure: Error | undefined
  child.once('error', (error) => {
    failure = error
  })
  const deadline = performance.now() + options.limitMs
  while (true) {
    if (failure) throw new Error(`${name} could not be started: ${failure.message}`)
    if (options.signal?.aborted) throw new Error(`${name}: the start was cancelled`)
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`${name} ended at start (${child.signalCode ?? `code ${child.exitCode}`})`)
    }
    if (await options.isReady()) return
    if (performance.now() > deadline) {
      throw new Error(`${name} was not ready within ${options.limitMs / 1000} s`)
    }
    await sleep(PAUSE_MS)
  }
}
