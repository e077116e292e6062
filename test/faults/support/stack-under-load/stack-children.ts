/**
 * The processes of a running stack, and their kills. A process gets a signal only while the stack
 * lists it and is its parent.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { type Random, shuffle } from '../../../../deploy/fleet/phones/random.ts'
import { SERVER_NAMES, SERVICE_NAMES } from '../../../../deploy/local/stack/settings.ts'
import type { ChildName } from '../../../../deploy/local/stack/state-files.ts'
import type { TestStack } from '../../../support/process/stack.ts'
import { until } from '../../../support/process/until.ts'

export const childNames: readonly ChildName[] = [...SERVICE_NAMES, ...SERVER_NAMES]

export type ChildKill = { child: ChildName; pid: number; atMs: number; openEvents: number }

/** The child's current process id, or null while it does not run. */
export function runningPid(running: TestStack, child: ChildName): number | null {
  const pid = running.stack.pids[child]
  return pid !== undefined && parentOf(pid) === running.pid ? pid : null
}

/** Null for a process that has ended, including one whose parent has not waited for it yet. */
function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' ? null : Number(parent)
  } catch {
    return null
  }
}

/** @returns the process that got the signal, or null when none runs at the moment */
export function signalChild(
  running: TestStack,
  child: ChildName,
  signal: NodeJS.Signals,
): number | null {
  const pid = runningPid(running, child)
  if (pid === null) return null
  try {
    process.kill(pid, signal)
    return pid
  } catch {
    return null
  }
}

export type KillPlan = {
  /** Number of kills of each child. */
  each: number
  children: readonly ChildName[]
  /**
   * The average time between two kills: exponentially distributed, so that some are close together.
   */
  meanGapMs: number
  random: Random
  /** Called before each kill. */
  before: (child: ChildName) => Promise<void>
  openEvents: () => number
  onKill?: (kill: ChildKill, n: number) => void
}

/** Kills every child `each` times, in random order at random moments. */
export async function killAtRandom(running: TestStack, plan: KillPlan): Promise<ChildKill[]> {
  const { random } = plan
  const all = plan.children.flatMap((child) => Array.from({ length: plan.each }, () => child))
  const left = shuffle(all, random)
  const kills: ChildKill[] = []
  while (left.length > 0) {
    await pause(random.exponential(plan.meanGapMs))
    const at = await until('a process to kill', () => {
      const up = left.findIndex((child) => runningPid(running, child) !== null)
      return up === -1 ? null : { up }
    })
    const child = left[at.up]!
    await plan.before(child)
    const pid = signalChild(running, child, 'SIGKILL')
    if (pid === null) continue
    left.splice(at.up, 1)
    const kill = { child, pid, atMs: Date.now(), openEvents: plan.openEvents() }
    kills.push(kill)
    plan.onKill?.(kill, kills.length)
    await until(`the end of ${child}`, () => parentOf(pid) !== running.pid)
  }
  return kills
}

const readyLimitMs = 120_000

/** Waits until everything runs again by itself. @returns the time that took */
export async function awaitAllReady(running: TestStack): Promise<number> {
  const sinceMs = performance.now()
  await until(
    'all processes run',
    () => childNames.every((child) => runningPid(running, child) !== null),
    readyLimitMs,
  )
  for (const name of SERVICE_NAMES) {
    await until(`${name} is ready`, () => expectReady(running.stack.internal[name]), readyLimitMs)
  }
  return performance.now() - sinceMs
}

/** @throws with the response when it is not ready */
async function expectReady(url: string): Promise<true> {
  const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })
  if (response.ok) return true
  throw new Error(`${response.status} ${await response.text()}`)
}
