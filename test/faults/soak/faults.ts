/**
 * One fault after another on a stack under load: a process killed, the broker paused, a store kept
 * down. After each it is measured how long the consumers need until they are level again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { ChildName } from '../../../deploy/local/stack/state-files.ts'
import type { Random } from '../../../services/fleet/phones/random.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { readProgress } from '../support/stack-under-load/read-back.ts'
import { childNames, runningPid, signalChild } from '../support/stack-under-load/stack-children.ts'

export type FaultKind = 'killed' | 'paused' | 'down'

export type SoakFault = {
  kind: FaultKind
  child: ChildName
  /** From its beginning to its end. */
  lastedMs: number
  /** Processes that were hit: more than one where a store was kept down. */
  hits: number
  /**
   * From its end until nothing of before it waits; null when that took longer than was waited.
   */
  lagMs: number | null
  /** Messages that waited at most. */
  pendingMax: number
}

const downMs = 20_000
const pausedMs: [number, number] = [5_000, 15_000]
const lagWaitMaxMs = 55_000
const lookMs = 250

/** A random fault, to its end. */
export async function suffer(running: TestStack, nats: Nats, random: Random): Promise<SoakFault> {
  const kind = random.weighted<FaultKind>([
    ['killed', 6],
    ['paused', 2],
    ['down', 3],
  ])
  const child =
    kind === 'killed'
      ? random.pick(childNames)
      : kind === 'paused'
        ? 'nats'
        : random.pick(['postgres', 'clickhouse'] as const)
  const startedMs = performance.now()
  const hits = await inflict[kind](running, child, random)
  const lastedMs = performance.now() - startedMs
  return { kind, child, lastedMs, hits, ...(await awaitLevel(nats)) }
}

type Inflict = (running: TestStack, child: ChildName, random: Random) => Promise<number>

const inflict: Record<FaultKind, Inflict> = {
  killed: async (running, child) => (signalChild(running, child, 'SIGKILL') === null ? 0 : 1),
  paused: async (running, child, random) => {
    const pid = signalChild(running, child, 'SIGSTOP')
    if (pid === null) return 0
    try {
      await pause(random.int(...pausedMs))
    } finally {
      if (runningPid(running, child) === pid) process.kill(pid, 'SIGCONT')
    }
    return 1
  },
  // Whatever the supervisor starts in its place is killed as well, until the time is over.
  down: async (running, child) => {
    const endMs = performance.now() + downMs
    let hits = 0
    while (performance.now() < endMs) {
      if (signalChild(running, child, 'SIGKILL') !== null) hits++
      await pause(50)
    }
    // The supervisor pauses longer after each end: what it starts now is left alone.
    while (runningPid(running, child) === null) await pause(50)
    return hits
  },
}

/** Until all that was in the stream at the end of the fault is acknowledged and nothing waits. */
export async function awaitLevel(nats: Nats): Promise<Pick<SoakFault, 'lagMs' | 'pendingMax'>> {
  const endedMs = performance.now()
  let target: number | null = null
  let pendingMax = 0
  while (performance.now() - endedMs < lagWaitMaxMs) {
    const progress = await readProgress(nats).catch(() => null)
    if (progress !== null) {
      // Of a broker that was killed, as soon as it is back.
      target ??= progress.lastSequence
      pendingMax = Math.max(pendingMax, progress.pending)
      if (progress.acknowledged >= target && progress.pending === 0) {
        return { lagMs: performance.now() - endedMs, pendingMax }
      }
    }
    await pause(lookMs)
  }
  return { lagMs: null, pendingMax }
}
