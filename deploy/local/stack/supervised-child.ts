// Supervises one child process of the stack: starts it, waits until it is ready, and restarts it
// with backoff when it exits. Reports the exit with the last log lines. A stop is final.

import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import { awaitReady } from './await-ready.ts'
import type { ChildLog } from './child-log.ts'
import { type Exit, endChild, exitOf, type LaunchSpec } from './launch.ts'
import { explainOutgoing } from './ports/ports.ts'
import { StartError } from './settings.ts'
import type { ChildName } from './state-files.ts'

const FIRST_PAUSE_MS = 100
/** Short, so that a server that is killed repeatedly still runs most of the time. */
const PAUSE_MS_MAX = 3_000
/** A child that ran this long was healthy, so the pause resets. */
const HEALTHY_MS = 20_000
const FIRST_START_TRIES = 3
/** The last output of a child may still be in the pipe when it exits. */
const LAST_OUTPUT_MS = 30
const LINE_CHARS_MAX = 4_096

export type ChildSpec = {
  name: ChildName
  launchSpec: () => LaunchSpec
  isReady: () => Promise<boolean>
  readyLimitMs: number
  stopSignal: NodeJS.Signals
  /**
   * Output which shows that the child runs but cannot recover without a restart. The supervisor
   * kills it and starts it again.
   */
  killOnOutput?: RegExp
}

export type SupervisorTools = {
  launch: (spec: LaunchSpec) => ChildProcess
  log: ChildLog
  /** Shows a line about this child at the terminal. */
  report: (line: string) => void
  /** Called when a process starts and when it has exited. */
  onPid: (pid: number, state: 'started' | 'gone') => void
}

export type SupervisedChild = {
  name: ChildName
  pid: () => number | undefined
  /** Resolves when the child is ready for the first time; after that it is kept running. */
  start: (signal: AbortSignal) => Promise<void>
  /** Stops it; kills it after `graceMs`. */
  stop: (graceMs: number) => Promise<void>
}

export function superviseChild(spec: ChildSpec, tools: SupervisorTools): SupervisedChild {
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
    if (spec.killOnOutput) killWhen(started, spec.killOnOutput)
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
        await sleep(LAST_OUTPUT_MS)
        const ended = AbortSignal.any([signal, stopping.signal])
        if (!timedOut && attempt < FIRST_START_TRIES) {
          const pauseMs = FIRST_PAUSE_MS * 2 ** attempt
          await sleep(pauseMs, undefined, { signal: ended }).catch(() => undefined)
          if (!ended.aborted) continue
        }
        throw new StartError(withLastLines((error as Error).message, tools.log))
      }
    }
  }

  async function keepRunning(first: ChildProcess): Promise<void> {
    let current = first
    let pauseMs = FIRST_PAUSE_MS
    let lastReport = ''
    while (true) {
      const exit = await exitOf(current)
      await sleep(LAST_OUTPUT_MS)
      if (stopping.signal.aborted) return
      if (performance.now() - startedAt > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS
      const report = withLastLines(`ended (${describeExit(exit)})`, tools.log)
      const text = report === lastReport ? `ended again (${describeExit(exit)})` : report
      lastReport = report
      tools.report(`${text}\nrestarting in ${pauseMs / 1000} s`)
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)
      current = launch()
      void announce(current)
    }
  }

  /** A restarted child may wait for other children without a time limit. */
  async function announce(restarted: ChildProcess): Promise<void> {
    const since = performance.now()
    const { name, isReady } = spec
    const { signal } = stopping
    try {
      await awaitReady({ name, child: restarted, isReady, limitMs: Infinity, signal })
      tools.report(`ready again after ${((performance.now() - since) / 1000).toFixed(1)} s`)
    } catch {
      // It exited or is being stopped; keepRunning reports that.
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
      // SIGKILL, because an orderly stop would rewrite files that the failed write has spared.
      if (lines.some((one) => lost.test(one))) child.kill('SIGKILL')
    })
  }
}

function describeExit(exit: Exit): string {
  return exit.signal ? `signal ${exit.signal}` : `code ${exit.code}`
}

function withLastLines(text: string, log: ChildLog): string {
  const lines = log.lastLines()
  const [, port] = /EADDRINUSE.*:(\d+)/.exec(lines.join('\n')) ?? []
  const why = port === undefined ? '' : explainOutgoing([Number(port)])
  const shown = lines.map((line) => `  | ${line.slice(0, 400)}`)
  return [text, ...shown, ...(why === '' ? [] : [why])].join('\n')
}
