// Starts the orphan reaper, sends it every child, and restarts it when it dies.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { type Exit, exitOf } from './launch.ts'

export type OrphanReaper = {
  add: (pid: number, orphanSignal: string) => void
  remove: (pid: number) => void
  pid: () => number | undefined
  /** Ends the reaper. Remove every child first. */
  close: () => Promise<Exit>
}

export function startOrphanReaper(env: Record<string, string | undefined>): OrphanReaper {
  const children = new Map<number, string>()
  let closing = false
  let child: ChildProcess = start()

  function start(): ChildProcess {
    const file = fileURLToPath(new URL('./orphan-reaper.ts', import.meta.url))
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
    for (const [pid, signal] of children) started.stdin?.write(`+ ${pid} ${signal}\n`)
    return started
  }

  return {
    add: (pid, orphanSignal) => {
      children.set(pid, orphanSignal)
      child.stdin?.write(`+ ${pid} ${orphanSignal}\n`)
    },
    remove: (pid) => {
      children.delete(pid)
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
