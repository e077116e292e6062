/**
 * Ends a process with SIGKILL as one of its threads enters its n-th write. strace follows it and
 * its children and sends the signal in place of the system call: earlier writes are done, this one
 * is not.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import {
  createLauncher,
  endChild,
  exitOf,
  findProgram,
} from '../../../deploy/local/stack/launch.ts'

export type WriteKill = {
  /** The system call that was not made; null when n was not reached. */
  call: string | null
  tookMs: number
}

/** Writes to files and sockets, and syncs. */
const calls = 'write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync'
const attachLimitMs = 15_000
const letGoMs = 250

/** @throws when there is no strace */
export function requireStrace(): string {
  const found = findProgram('strace', process.env.PATH)
  if (found !== null) return found
  throw new Error('this drill needs strace, and there is none: install the package `strace`')
}

/**
 * Follows a process until a chosen write is its last one.
 * @param n from 1, counted by thread and by system call
 * @param limitMs maximum wait for the n-th write
 */
export async function killAtWrite(pid: number, n: number, limitMs: number): Promise<WriteKill> {
  const strace = requireStrace()
  const startedMs = performance.now()
  const pids = [pid, ...childrenOf(pid)].flatMap((one) => ['-p', String(one)])
  const filters = ['-e', `trace=${calls}`, '-e', `inject=${calls}:signal=SIGKILL:when=${n}`]
  const child = createLauncher({ pathVar: process.env.PATH }).launch({
    command: strace,
    args: ['-f', '-s', '0', ...pids, ...filters],
    env: { PATH: process.env.PATH },
    orphanSignal: 'SIGTERM',
  })
  let attached = false
  let last: string | null = null
  let killed = false
  let rest = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (/ attached/.test(line)) attached = true
      // The first call that never returns is the one that was interrupted.
      if (last === null) [, last = null] = /(\w+)(?:\(| resumed>).*= \?/.exec(line) ?? []
      if (line.includes('killed by SIGKILL')) killed = true
    }
  })
  let over = false
  void exitOf(child).then(() => {
    over = true
  })
  const isLate = (limit: number) => performance.now() - startedMs > limit
  while (!attached && !over && !isLate(attachLimitMs)) await pause(5)
  const deadlineMs = performance.now() - startedMs + limitMs
  while (!killed && !over && !isLate(deadlineMs)) await pause(5)
  // Detaches from the others, as the rest of PostgreSQL. On SIGINT strace waits for threads of a
  // dying process; its own end detaches from all at once.
  await endChild(child, { signal: 'SIGTERM', graceMs: letGoMs })
  return { call: killed ? (last ?? 'unknown') : null, tookMs: performance.now() - startedMs }
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
        .split(' ')
        .filter((text) => text !== '')
        .map(Number),
    )
  } catch {
    return []
  }
}
