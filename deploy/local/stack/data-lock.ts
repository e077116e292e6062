// One stack per data folder. The lock file names the process that holds it and every child it has
// started, each with its start time, so that a lock left by a crash is recognised however often the
// process ids have been reused, and whatever of that crashed stack still runs is ended first.

import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { isAlive, sendSignal, startToken } from './launch.ts'
import { StartError } from './settings.ts'

type Held = { pid: number; started: string | null }
type HeldChild = Held & { name: string; signal: NodeJS.Signals }
type LockContent = Held & { children: HeldChild[] }

const LEFTOVER_GRACE_MS = 2_000

export type DataLock = {
  /** Children of the crashed stack that held the folder before. */
  leftovers: HeldChild[]
  /** Records a running child under its name, replacing the one before. */
  note: (name: string, pid: number, signal: NodeJS.Signals) => void
  release: () => void
}

/** Takes the folder, or throws a StartError that names the process using it. */
export function lockDataDir(dataDir: string): DataLock {
  const file = join(dataDir, 'stack.lock')
  const own: LockContent = { pid: process.pid, started: startToken(process.pid), children: [] }
  const fresh = `${file}.${process.pid}-${randomUUID().slice(0, 8)}`
  writeFileSync(fresh, JSON.stringify(own), { mode: 0o600 })
  try {
    const leftovers = take(file, fresh, dataDir)
    return {
      leftovers,
      note: (name, pid, signal) => {
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

function take(file: string, fresh: string, dataDir: string): HeldChild[] {
  const leftovers: HeldChild[] = []
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
    // Moved aside rather than removed: should somebody have taken the folder over between the two
    // steps, what was moved is theirs and goes back.
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
  throw new StartError(`${file} changes hands all the time`)
}

function readLock(file: string): LockContent | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as LockContent
  } catch {
    return null
  }
}

function stillRuns(held: Held): boolean {
  return isAlive(held.pid) && startToken(held.pid) === held.started
}

/** Ends what a crashed stack left running; its own guard has usually done so already. */
export async function endLeftovers(leftovers: HeldChild[]): Promise<HeldChild[]> {
  const running = leftovers.filter(stillRuns)
  for (const child of running) sendSignal(child.pid, child.signal)
  const deadline = performance.now() + LEFTOVER_GRACE_MS
  while (running.some(stillRuns) && performance.now() < deadline) await sleep(20)
  for (const child of running.filter(stillRuns)) sendSignal(child.pid, 'SIGKILL')
  while (running.some(stillRuns)) await sleep(20)
  return running
}
