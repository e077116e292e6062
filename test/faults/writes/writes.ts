/**
 * `npm run faults -- writes [--upto 100] [--sample 5] [--all] [--together K] [--rate 150]
 * [--processes nats,...] [--seed S]`: each process of a stack under load is killed as it enters its
 * n-th write, for a sample of n from 1 to `upto`, or for all; K processes at a time, each at its
 * own write. Prints the interrupted system calls. Exits with 1 when anything accepted is lost or
 * duplicated, or no call was interrupted. Needs strace.
 */

import { createRandom, type Random, shuffle } from '../../../deploy/fleet/phones/random.ts'
import type { ChildName } from '../../../deploy/local/stack/state-files.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { count, describeCounts } from '../support/counts.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { findBreaches, judgeBreaches } from '../support/stack-under-load/find-breaches.ts'
import {
  awaitAllReady,
  childNames,
  runningPid,
} from '../support/stack-under-load/stack-children.ts'
import {
  reportClients,
  type StackUnderLoad,
  withStackUnderLoad,
} from '../support/stack-under-load/stack-under-load.ts'
import { killAtWrite, requireStrace } from './kill-at-write.ts'

/** Long enough for the hundredth write of any thread that writes. */
const reachLimitMs = 6_000

type Point = { child: ChildName; n: number }
type Hit = Point & { call: string | null }

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { upto, together, rate, seed, ...options } = readOptions(args, {
    upto: 100,
    sample: 5,
    all: false,
    together: 1,
    processes: childNames.join(),
    rate: 150,
    seed: randomSeed(),
  })
  requireStrace()
  const children = childNames.filter((child) => options.processes.split(',').includes(child))
  const sample = options.all ? upto : options.sample
  const random = createRandom(seed, 'points')
  const groups = choosePoints({ children, upto, sample, together, random })
  print(`${groups.flat().length} kills at the n-th write, ${sample} of n in 1..${upto} for each of`)
  print(`${children.join(', ')}; ${together} at a time; --seed ${seed}`)
  const load = { seed, ratePerSecond: rate, tenants: 2, eventsPerDevice: 12 }
  await withStackUnderLoad(load, async (stack) => {
    const hits = await killAtPoints(stack, groups)
    const findings = await findBreaches({
      ...stack,
      random: createRandom(seed, 'comparison'),
      onStep: (line) => print(`  ${line}`),
    })
    reportHits(children, hits)
    reportClients(stack, findings)
    const missed = children.filter((child) => !hits.some((hit) => hit.child === child && hit.call))
    reportBroken([...judgeBreaches(findings), ...missed.map((child) => `never hit: ${child}`)])
  })
}

type Choice = {
  children: readonly ChildName[]
  upto: number
  /** Number of values of n for each child. */
  sample: number
  together: number
  random: Random
}

/**
 * One n from each of `sample` equal ranges of 1..upto, alternating between the children.
 * @returns groups of points, each of different children, to be reached at the same time
 */
function choosePoints({ children, upto, sample, together, random }: Choice): Point[][] {
  const size = upto / sample
  const rounds = Array.from({ length: sample }, (_, round) =>
    children.map((child) => ({ child, n: 1 + Math.floor((round + random.next()) * size) })),
  )
  return shuffle(rounds, random).flatMap((round) => {
    const mixed = together === 1 ? round : shuffle(round, random)
    const starts = mixed.map((_, at) => at).filter((at) => at % together === 0)
    return starts.map((at) => mixed.slice(at, at + together))
  })
}

/**
 * Group by group; after each everything must run again by itself. Points that were missed, because
 * a related process was killed as well, are tried again alone at the end.
 */
async function killAtPoints(
  { running }: StackUnderLoad,
  groups: readonly Point[][],
): Promise<Hit[]> {
  const hits: Hit[] = []
  const killGroups = async (points: readonly Point[][]): Promise<Point[]> => {
    const missed: Point[] = []
    for (const group of points) {
      await awaitAllReady(running)
      const results = await Promise.all(group.map((point) => killAtPoint(running, point)))
      hits.push(...results.filter(({ call }) => call !== null))
      missed.push(...results.filter(({ call }) => call === null))
    }
    return missed
  }
  const missed = await killGroups(groups)
  const never = await killGroups(missed.map((point) => [point]))
  return [...hits, ...never.map((point) => ({ ...point, call: null }))]
}

async function killAtPoint(running: TestStack, { child, n }: Point): Promise<Hit> {
  const pid = runningPid(running, child)
  // It has ended since all were ready: the point was missed, and is tried again.
  if (pid === null) return { child, n, call: null }
  const { call, tookMs } = await killAtWrite(pid, n, reachLimitMs)
  const what = call === null ? 'not reached' : `killed in ${call}`
  print(`  ${child}, write ${n}: ${what} after ${Math.round(tookMs)} ms`)
  return { child, n, call }
}

function reportHits(children: readonly ChildName[], hits: readonly Hit[]): void {
  for (const child of children) {
    const own = hits.filter((hit) => hit.child === child)
    const calls = new Map<string, number>()
    for (const { call } of own) if (call !== null) count(calls, call)
    const reached = own.filter(({ call }) => call !== null).length
    print(`${child}: killed ${reached} of ${own.length} times (${describeCounts(calls)})`)
  }
}
