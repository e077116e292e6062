// One supervised child of the stack. It is started and waited for; when it ends by itself it is
// started again, after a growing pause, with its exit and last words shown. Stopping is final.

import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import { awaitReady } from './await-ready.ts'
import { type Exit, endChild, exitOf, type LaunchSpec } from './launch.ts'
import type { PartLog } from './part-log.ts'
import { StartError } from './settings.ts'
import type { PartName } from './state-files.ts'

const FIRST_PAUSE_MS = 100
/** Short enough that a server which is killed again and again is there most of the time. */
const PAUSE_MS_MAX = 3_000
/** A child that ran this long was healthy: the next pause is the first again. */
const HEALTHY_MS = 20_000
const FIRST_START_TRIES = 3
/** What a child wrote just before its end may still be in the pipe. */
const LAST_WORDS_MS = 30
const LINE_CHARS_MAX = 4_096

export type PartSpec = {
  name: PartName
  launchSpec: () => LaunchSpec
  isReady: () => Promise<boolean>
  readyLimitMs: number
  stopSignal: NodeJS.Signals
  /**
   * What it prints when it runs on but will not do its work again until it is started anew: then it
   * is killed, and started again as if it had ended by itself.
   */
  lostWhen?: RegExp
}

export type PartTools = {
  launch: (spec: LaunchSpec) => ChildProcess
  log: PartLog
  /** Tells the person at the terminal something about this part. */
  tell: (line: string) => void
  /** Called with each new process id, and with null when that process has gone. */
  onPid: (pid: number, state: 'started' | 'gone') => void
}

export type Part = {
  name: PartName
  pid: () => number | undefined
  /** Resolves when the part is usable for the first time; from then on it is kept running. */
  start: (signal: AbortSignal) => Promise<void>
  /** Ends it within `graceMs` and a kill. */
  stop: (graceMs: number) => Promise<void>
}

export function createPart(spec: PartSpec, tools: PartTools): Part {
  let child: ChildProcess | undefined
  let startedAt = 0
  const stopping = new AbortController()

  function launch(): ChildProcess {
    tools.log.newChild()
    const started = tools.launch(spec.launchSpec())
    child = started
    startedAt = performance.now()
    tools.log.follow(started.stdout)
    tools.log.follow(started.stderr)
    if (spec.lostWhen) killWhen(started, spec.lostWhen)
    const { pid } = started
    if (pid !== undefined) {
      tools.onPid(pid, 'started')
      started.once('exit', () => tools.onPid(pid, 'gone'))
    }
    return started
  }

  async function start(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const started = launch()
      const { name, isReady, readyLimitMs: limitMs } = spec
      try {
        await awaitReady({ name, child: started, isReady, limitMs, signal })
        void keepRunning(started)
        return
      } catch (error) {
        const timedOut = started.exitCode === null && started.signalCode === null
        await endChild(started, { signal: 'SIGKILL', graceMs: 0 })
        await sleep(LAST_WORDS_MS)
        const called = signal.aborted || stopping.signal.aborted
        if (called || timedOut || attempt === FIRST_START_TRIES) {
          throw new StartError(withLastWords((error as Error).message, tools.log))
        }
        await sleep(FIRST_PAUSE_MS * 2 ** attempt)
      }
    }
  }

  async function keepRunning(first: ChildProcess): Promise<void> {
    let current = first
    let pauseMs = FIRST_PAUSE_MS
    let lastComplaint = ''
    while (true) {
      const exit = await exitOf(current)
      await sleep(LAST_WORDS_MS)
      if (stopping.signal.aborted) return
      if (performance.now() - startedAt > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS
      const complaint = withLastWords(`ended (${describeExit(exit)})`, tools.log)
      const text = complaint === lastComplaint ? `ended again (${describeExit(exit)})` : complaint
      lastComplaint = complaint
      tools.tell(`${text}\nrestarting in ${pauseMs / 1000} s`)
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)
      current = launch()
      void announce(current)
    }
  }

  /** A restarted part may wait for others as long as they need: no limit, only its end. */
  async function announce(restarted: ChildProcess): Promise<void> {
    const since = performance.now()
    const { name, isReady } = spec
    const { signal } = stopping
    try {
      await awaitReady({ name, child: restarted, isReady, limitMs: Infinity, signal })
      tools.tell(`ready again after ${((performance.now() - since) / 1000).toFixed(1)} s`)
    } catch {
      // It ended or is being stopped: keepRunning tells.
    }
  }

  return {
    name: spec.name,
    pid: () => child?.pid,
    start,
    stop: async (graceMs) => {
      stopping.abort()
      if (child) await endChild(child, { signal: spec.stopSignal, graceMs })
    },
  }
}

function killWhen(child: ChildProcess, lost: RegExp): void {
  for (const stream of [child.stdout, child.stderr]) {
    let line = ''
    stream?.on('data', (chunk: string) => {
      const lines = (line + chunk).split('\n')
      line = (lines.pop() ?? '').slice(-LINE_CHARS_MAX)
      // By force: an orderly end would write its files anew, where it could not write before.
      if (lines.some((one) => lost.test(one))) child.kill('SIGKILL')
    })
  }
}

function describeExit(exit: Exit): string {
  return exit.signal ? `signal ${exit.signal}` : `code ${exit.code}`
}

function withLastWords(text: string, log: PartLog): string {
  return [text, ...log.lastLines().map((line) => `  | ${line.slice(0, 400)}`)].join('\n')
}
