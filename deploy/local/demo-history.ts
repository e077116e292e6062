// A week of a simulated fleet in its own sandbox tenant, so that every page of a new console has
// content; `demo` stays empty for a newcomer's own requests. It is created once, by `di fleet
// --history` in a process of the lowest priority, after the stack is ready.

import type { ChildProcess } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'

import type { ChildLog } from './stack/child-log.ts'
import { endChild, exitOf, type LaunchSpec } from './stack/launch.ts'
import type { LocalSettings } from './stack/settings.ts'

export const HISTORY_TENANT = 'demo-fleet'
const DAYS = 7
const DEVICES = 300
const SEED = 1

export type DemoHistory = {
  /** Ends it; kills it after `graceMs`. */
  stop: (graceMs: number) => Promise<void>
}

/** @param isFirstStart whether the data folder was empty */
export function isHistoryWanted(settings: LocalSettings, isFirstStart: boolean): boolean {
  const embedded = Object.keys(settings.external).length === 0
  return isFirstStart && embedded && settings.env.DEMO_HISTORY !== '0'
}

/**
 * Starts to create the history.
 * @param options.onGone called with its process id when it has ended
 * @param options.report prints how it ended
 */
export function startDemoHistory(options: {
  settings: LocalSettings
  launch: (spec: LaunchSpec) => ChildProcess
  log: ChildLog
  consoleUrl: string
  onGone: (pid: number) => void
  report: (line: string) => void
}): DemoHistory {
  const { settings, launch, log, consoleUrl, onGone, report } = options
  const child = launch({
    command: process.execPath,
    args: [
      ...[join(settings.servicesDir, 'console', 'cli.ts'), 'fleet', '--history', `${DAYS}`],
      ...['--devices', `${DEVICES}`, '--seed', `${SEED}`, '--tenant', HISTORY_TENANT],
    ],
    env: { ...settings.env, DATA_DIR: settings.dataDir, CONSOLE_URL: undefined },
    orphanSignal: 'SIGTERM',
  })
  log.follow(child.stdout)
  log.follow(child.stderr)
  const { pid } = child
  if (pid !== undefined) {
    setPriority(pid, constants.priority.PRIORITY_LOW)
    void exitOf(child).then(({ code }) => {
      onGone(pid)
      report(describe(code, consoleUrl))
    })
  }
  return {
    stop: async (graceMs) => {
      await endChild(child, { signal: 'SIGTERM', graceMs })
    },
  }
}

/** A failed history leaves the stack as it is. */
function describe(code: number | null, consoleUrl: string): string {
  if (code !== 0) {
    return `the history of the simulated fleet is not complete; di fleet --history ${DAYS} makes another`
  }
  return `a week of a simulated fleet is in ${consoleUrl}/t/${HISTORY_TENANT}/overview`
}
