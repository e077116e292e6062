/**
 * `npm run faults -- writes [--upto 100] [--sample 5] [--all] [--together K] [--processes
 * nats,...] [--seed S]`: each process of a whole stack under load is killed as it enters its n-th
 * write, for a sample of n from 1 to 100, or for all; K processes at a time, each at a write of
 * its own. Prints which system calls were hit and what was read back; ends with status 1 when
 * anything accepted is lost or there twice, or nothing was hit. Needs strace.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { ChildName } from '../../../deploy/local/stack/state-files.ts'
import { createRandom, type Random, shuffle } from '../../../services/fleet/phones/random.ts'
import type { TestStack } from '../../support/process/stack.ts'
import { describeCounts } from '../kills/kills.ts'
import { findBreaches, judgeBreaches } from '../support/stack-under-load/find-breaches.ts'
import {
  awaitAllReady,
  childNames,
  runningPid,
} from '../support/stack-under-load/stack-children.ts'
import {
  type KillsWorld,
  readEvidence,
  withWorld,
} from '../support/stack-under-load/stack-under-load.ts'
import { killAtWrite, requireStrace } from './kill-at-write.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
/** Long enough for the hundredth write of a thread that writes at all. */
const reachLimitMs = 6_000

type Point = { child: ChildName; n: number }
type Hit = Point & { call: string | null }

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      upto: { type: 'string', default: '100' },
      sample: { type: 'string', default: '5' },
      all: { type: 'boolean', default: false },
      together: { type: 'string', default: '1' },
      processes: { type: 'string', default: childNames.join() },
      rate: { type: 'string', default: '150' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  requireStrace()
  const seed = Number(values.seed)
  const children = childNames.filter((child) => values.processes.split(',').includes(child))
  const together = Number(values.together)
  const sample = values.all ? Number(values.upto) : Number(values.sample)
  const random = createRandom(seed, 'points')
  const groups = choosePoints({ children, upto: Number(values.upto), sample, together, random })
  say(
    `${groups.flat().length} kills at the n-th write, ${sample} of n in 1..${values.upto} for each of`,
  )
  say(`${children.join(', ')}; ${together} at a time; --seed ${seed}`)
  const options = { seed, ratePerSecond: Number(values.rate), tenants: 2, eventsPerDevice: 12 }
  await withWorld(options, async (world) => {
    const hits = await killAtPoints(world, groups)
    const findings = await findBreaches({
      ...world,
      random: createRandom(seed, 'comparison'),
      onStep: (line) => say(`  ${line}`),
    })
    reportHits(children, hits)
    const evidence = readEvidence(world)
    say(`tries: ${describeCounts(world.load.outcomes)}; after an unknown one ${evidence.resolved}`)
    say(`publishes tried again ${evidence.retriedPublishes}, found stored already`)
    say(
      `  ${evidence.duplicatePublishes}; redelivered to the scorer ${evidence.redelivered.scorer}`,
    )
    say(`accepted: ${findings.accepted}, alerts: ${findings.alerts}, devices: ${findings.devices}`)
    const broken = judgeBreaches(findings)
    const missed = children.filter((child) => !hits.some((hit) => hit.child === child && hit.call))
    broken.push(...missed.map((child) => `never hit: ${child}`))
    for (const wrong of broken) say(`BROKEN: ${wrong}`)
    if (broken.length > 0) process.exitCode = 1
    else say('every promise held')
  })
}

type Choice = {
  children: readonly ChildName[]
  upto: number
  /** So many n of each child. */
  sample: number
  together: number
  random: Random
}

/**
 * One n from each of so many equal shares of 1..upto. Children take turns, so that each can rest.
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
 * Group by group; after each everything has to come back by itself. Points that were not reached,
 * because whoever the process works with was killed as well, are tried again at the end, alone.
 */
async function killAtPoints({ running }: KillsWorld, groups: readonly Point[][]): Promise<Hit[]> {
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
  // Gone again since everybody was ready: missed, and so tried again.
  if (pid === null) return { child, n, call: null }
  const { call, tookMs } = await killAtWrite(pid, n, reachLimitMs)
  const what = call === null ? 'not reached' : `killed in ${call}`
  say(`  ${child}, write ${n}: ${what} after ${Math.round(tookMs)} ms`)
  return { child, n, call }
}

function reportHits(children: readonly ChildName[], hits: readonly Hit[]): void {
  for (const child of children) {
    const own = hits.filter((hit) => hit.child === child)
    const calls = new Map<string, number>()
    for (const { call } of own) if (call !== null) calls.set(call, (calls.get(call) ?? 0) + 1)
    const reached = own.filter(({ call }) => call !== null).length
    say(`${child}: killed ${reached} of ${own.length} times (${describeCounts(calls)})`)
  }
}
