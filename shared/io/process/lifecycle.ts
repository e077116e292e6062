/**
 * The lifecycle of a process: configuration errors end it with a readable message; SIGTERM, SIGINT
 * and the death of its parent drain it within a time limit; an uncaught error is logged and ends
 * it, so that its supervisor restarts it.
 */
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

/** The hard limit of a stop, below the supervisor's ten seconds. */
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

/**
 * Installs the signal handlers of a process.
 * @param parentPid when set, the process stops once that process is gone
 */
export function createLifecycle(log: Log, parentPid?: number): Lifecycle {
  const steps = createStopSteps(log)
  let stopping = false
  const grace = closeWithGrace({ delay: stopLimitMs, logger: false }, async ({ err, signal }) => {
    stopping = true
    if (err !== undefined) log.fatal({ err }, 'stopping after an uncaught error')
    else log.info({ signal }, 'stopping')
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

/** Runs a process's main function. An error at start is printed and ends it with status 1. */
export function run(main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    const text = error instanceof ConfigError ? error.message : describe(error)
    process.stderr.write(`${text}\n`)
    process.exit(1)
  })
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
