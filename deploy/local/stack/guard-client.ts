// The stack's side of its guard: starts it, tells it of every child, and replaces it when it dies.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { type Exit, exitOf } from './launch.ts'

export type Guard = {
  add: (pid: number, orphanSignal: string) => void
  remove: (pid: number) => void
  pid: () => number | undefined
  /** Lets the guard end; it has nothing to do once every child is removed. */
  close: () => Promise<Exit>
}

export function startGuard(env: Record<string, string | undefined>): Guard {
  const wards = new Map<number, string>()
  let closing = false
  let child: ChildProcess = start()

  function start(): ChildProcess {
    const file = fileURLToPath(new URL('./guard.ts', import.meta.url))
    const started = spawn(process.execPath, [file], {
      env,
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    started.stdin?.on('error', () => undefined)
    started.once('error', () => undefined)
    started.once('exit', () => {
      if (!closing) child = start()
    })
    for (const [pid, signal] of wards) started.stdin?.write(`+ ${pid} ${signal}\n`)
    return started
  }

  return {
    add: (pid, orphanSignal) => {
      wards.set(pid, orphanSignal)
      child.stdin?.write(`+ ${pid} ${orphanSignal}\n`)
    },
    remove: (pid) => {
      wards.delete(pid)
      child.stdin?.write(`- ${pid}\n`)
    },
    pid: () => child.pid,
    close: () => {
      closing = true
      child.stdin?.end()
      return exitOf(child)
    },
  }
}
