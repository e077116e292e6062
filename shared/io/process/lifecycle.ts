/**
 * The lifecycle of a process: configuration errors end it with a readable message; SIGTERM, SIGINT
 * and the death of its parent drain it within a time limit; an uncaught error is logged and ends
 * it, so that its supervisor restarts it.
 */
import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import { ConfigError } from './config.ts'
import type { Log } from './log.ts'

/** The steps of a stop. */
export type StopSteps = {
  /** Registers a step. Steps run in sequence, the last registered first. */
  onStop: (name: string, step: () => Promise<void> | void) => void
}

export type Lifecycle = StopSteps & {
  /** True from the moment the process began to stop: readiness answers 503. */
  stopping: () => boolean
  /** Stops the process gracefully, as a signal does. */
  stop: (reason: string) => void
}

export type LifecycleOptions = {
  /** The process stops once this one is gone. */
  parentPid?: number | undefined
  /**
   * How long the process serves on after a signal, while readiness is 503 already: time for
   * balancers to send new connections elsewhere.
   */
  stopDelayMs?: number
}

/** The hard limit of a stop after the delay, below the supervisor's ten seconds. */
const stopLimitMs = 8_000

/** Collects steps; `run` runs them. A step that fails is logged, and the others run. */
export function createStopSteps(log: Log): StopSteps & { run: () => Promise<void> } {
  const steps: { name: string; step: () => Promise<void> | void }[] = []
  return {
    onStop: (name, step) => steps.push({ name, step }),
    run: async () => {
      for (const { name, step } of steps.reverse()) {
        try {
          await step()
        } catch (error) {
          log.error({ err: error, step: name }, 'a step of stopping failed')
        }
      }
    },
  }
}

/** Installs the signal handlers of a process. */
export function createLifecycle(log: Log, options: LifecycleOptions = {}): Lifecycle {
  const { parentPid, stopDelayMs = 0 } = options
  const steps = createStopSteps(log)
  let stopping = false
  const limits = { delay: stopDelayMs + stopLimitMs, logger: false as const }
  const grace = closeWithGrace(limits, async ({ err, signal }) => {
    stopping = true
    if (err !== undefined) log.fatal({ err }, 'stopping after an uncaught error')
    else log.info({ signal }, 'stopping')
    if (signal !== undefined) await sleep(stopDelayMs)
    await steps.run()
    log.info('stopped')
  })
  if (parentPid !== undefined) watchParent(parentPid, () => grace.close())
  return {
    onStop: steps.onStop,
    stopping: () => stopping,
    stop: (reason) => {
      log.info({ reason }, 'stopping on request')
      grace.close()
    },
  }
}

function watchParent(pid: number, gone: () => void): void {
  // A direct child sees its parent id change at once, even if the pid is reused. Behind a wrapper
  // only the pid itself can be checked.
  const direct = process.ppid === pid
  const timer = setInterval(() => {
    if (direct ? process.ppid === pid : isAlive(pid)) return
    clearInterval(timer)
    gone()
  }, 500)
  timer.unref()
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Runs a process's main function. An error at start is printed and ends it with status 1. Where
 * Node keeps compiled files, the next start has those of this one, also if this process is killed.
 */
export function run(main: () => Promise<void>): void {
  main().then(flushCompileCache, (error: unknown) => {
    const text = error instanceof ConfigError ? error.message : describe(error)
    process.stderr.write(`${text}\n`)
    process.exit(1)
  })
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
