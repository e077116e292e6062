/**
 * Sequential faults on a stack under load: a process is killed, nats-server hangs, or a store is
 * down. After each the drill measures the time until the backlog is empty.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Random } from '../../../deploy/fleet/phones/random.ts'
import type { ChildName } from '../../../deploy/local/stack/state-files.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { readProgress } from '../../support/telemetry/read-stream.ts'
import { childNames, runningPid, signalChild } from '../support/stack-under-load/stack-children.ts'

export type FaultKind = 'killed' | 'paused' | 'down'

export type SoakFault = {
  kind: FaultKind
  child: ChildName
  /** From its start to its end. */
  lastedMs: number
  /** Processes that got the signal: more than one where a store was kept down. */
  hits: number
  /** From its end until the backlog was empty; null after the limit. */
  lagMs: number | null
  /** The largest backlog, in messages. */
  pendingMax: number
}

const downMs = 20_000
const pausedMs: [number, number] = [5_000, 15_000]
const lagWaitMaxMs = 55_000
const pollMs = 250

/** Injects a random fault and waits for its end and for an empty backlog. */
export async function injectFault(
  running: TestStack,
  nats: Nats,
  random: Random,
): Promise<SoakFault> {
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
  const hits = await inject[kind](running, child, random)
  const lastedMs = performance.now() - startedMs
  return { kind, child, lastedMs, hits, ...(await awaitNoBacklog(nats)) }
}

type Inject = (running: TestStack, child: ChildName, random: Random) => Promise<number>

const inject: Record<FaultKind, Inject> = {
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
  // Each restart by the supervisor is killed as well, until the time is over.
  down: async (running, child) => {
    const endMs = performance.now() + downMs
    let hits = 0
    while (performance.now() < endMs) {
      if (signalChild(running, child, 'SIGKILL') !== null) hits++
      await pause(50)
    }
    // The supervisor pauses longer after each end; the next restart is not killed.
    while (runningPid(running, child) === null) await pause(50)
    return hits
  },
}

/** Waits until all that is in the stream now is acknowledged and nothing is pending. */
export async function awaitNoBacklog(nats: Nats): Promise<Pick<SoakFault, 'lagMs' | 'pendingMax'>> {
  const endedMs = performance.now()
  let target: number | null = null
  let pendingMax = 0
  while (performance.now() - endedMs < lagWaitMaxMs) {
    const progress = await readProgress(nats).catch(() => null)
    if (progress !== null) {
      // After a kill of nats-server, as soon as it runs again.
      target ??= progress.lastSequence
      pendingMax = Math.max(pendingMax, progress.pending)
      if (progress.acknowledged >= target && progress.pending === 0) {
        return { lagMs: performance.now() - endedMs, pendingMax }
      }
    }
    await pause(pollMs)
  }
  return { lagMs: null, pendingMax }
}
