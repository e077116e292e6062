// Locks a data folder for one stack. The lock file has the process ids of the stack and of its
// children with their start times, so that a lock left by a crash is recognised although its ids
// may have been reused. The children of a crashed stack are stopped first.

import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { isAlive, sendSignal, startToken } from './launch.ts'
import { StartError } from './settings.ts'

type LockedProcess = { pid: number; started: string | null }
type LockedChild = LockedProcess & { name: string; signal: NodeJS.Signals }
type LockContent = LockedProcess & { children: LockedChild[] }

const LEFTOVER_GRACE_MS = 2_000

export type DataLock = {
  /** Children of a crashed stack that had the lock before. */
  leftovers: LockedChild[]
  /** Records a running child and replaces the previous one of that name. */
  addChild: (name: string, pid: number, signal: NodeJS.Signals) => void
  release: () => void
}

/** Acquires the lock, or throws a StartError that names its owner. */
export function lockDataDir(dataDir: string): DataLock {
  const file = join(dataDir, 'stack.lock')
  const own: LockContent = { pid: process.pid, started: startToken(process.pid), children: [] }
  const fresh = `${file}.${process.pid}-${randomUUID().slice(0, 8)}`
  writeFileSync(fresh, JSON.stringify(own), { mode: 0o600 })
  try {
    const leftovers = acquire(file, fresh, dataDir)
    return {
      leftovers,
      addChild: (name, pid, signal) => {
        const child = { name, pid, started: startToken(pid), signal }
        own.children = [...own.children.filter((other) => other.name !== name), child]
        writeFileSync(fresh, JSON.stringify(own), { mode: 0o600 })
        renameSync(fresh, file)
      },
      release: () => rmSync(file, { force: true }),
    }
  } finally {
    rmSync(fresh, { force: true })
  }
}

function acquire(file: string, fresh: string, dataDir: string): LockedChild[] {
  const leftovers: LockedChild[] = []
  for (let attempt = 0; attempt < 10; attempt++) {
    try {
      linkSync(fresh, file)
      return leftovers
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const holder = readLock(file)
    if (holder && stillRuns(holder)) {
      throw new StartError(`already running on ${dataDir}, pid ${holder.pid}`)
    }
    // Renamed, not removed: another process may have acquired the lock between the two steps, and
    // then its lock file is linked back.
    const aside = `${fresh}.stale`
    try {
      renameSync(file, aside)
    } catch {
      continue
    }
    const moved = readLock(aside)
    if (moved && stillRuns(moved)) linkSync(aside, file)
    else leftovers.push(...(moved?.children ?? []))
    rmSync(aside, { force: true })
  }
  throw new StartError(`${file} is acquired and released by other processes all the time`)
}

function readLock(file: string): LockContent | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as LockContent
  } catch {
    return null
  }
}

function stillRuns(entry: LockedProcess): boolean {
  return isAlive(entry.pid) && startToken(entry.pid) === entry.started
}

/** Stops children of a crashed stack that its orphan reaper has not stopped. */
export async function endLeftovers(leftovers: LockedChild[]): Promise<LockedChild[]> {
  const running = leftovers.filter(stillRuns)
  for (const child of running) sendSignal(child.pid, child.signal)
  const deadline = performance.now() + LEFTOVER_GRACE_MS
  while (running.some(stillRuns) && performance.now() < deadline) await sleep(20)
  for (const child of running.filter(stillRuns)) sendSignal(child.pid, 'SIGKILL')
  while (running.some(stillRuns)) await sleep(20)
  return running
}
