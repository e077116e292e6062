/** Repeats a background task until it is stopped. Every background job runs on this loop. */
import type { Log } from './log.ts'
import { pause } from './pause.ts'

type PollOptions = {
  log: Log
  /** Time from the end of one run to the start of the next, in milliseconds. */
  everyMs: number | (() => number)
  /** The log message when runs fail, such as `retention cannot run`. */
  failure: string
  /** The first of consecutive failures that is logged, 1 by default. */
  logFromFailure?: number
  /** Called after each failed run. */
  onFailure?: () => void
}

/**
 * Runs the task at once and again after each pause. A failed run is repeated like any other, and
 * consecutive failures are logged once.
 * @returns when the signal is aborted and the current run has ended
 */
export async function poll(
  task: (signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
  { log, everyMs, failure, logFromFailure = 1, onFailure }: PollOptions,
): Promise<void> {
  const toPauseMs = typeof everyMs === 'number' ? () => everyMs : everyMs
  for (let failures = 0; !signal.aborted; await pause(toPauseMs(), signal)) {
    try {
      await task(signal)
      failures = 0
    } catch (error) {
      failures += 1
      onFailure?.()
      if (failures === logFromFailure) log.warn({ err: error }, failure)
    }
  }
}

/** A running task. `stop` returns when its current run has ended. */
export type Poller = { stop: () => Promise<void> }

/** Starts `poll` in the background. */
export function startPolling(
  task: (signal: AbortSignal) => Promise<unknown>,
  options: PollOptions,
): Poller {
  const stopped = new AbortController()
  const running = poll(task, stopped.signal, options)
  return {
    stop: async () => {
      stopped.abort()
      await running
    },
  }
}
