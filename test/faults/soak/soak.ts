/**
 * `npm run faults -- soak [--minutes 60] [--rate R] [--seed S]`: a stack at half of its capacity on
 * this machine, measured first unless a rate is given, with a random fault every minute. Prints
 * each fault, the time until the backlog was empty, and the memory, files and connections of every
 * process. Exits with 1 when that time exceeds 30 s, memory or open files grow, or anything
 * accepted is lost or duplicated.
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { keepAliveTimeoutMs } from '#shared/io/http/http-server.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { print, randomSeed, readOptions, reportBroken, seconds } from '../support/drill.ts'
import { findBreaches, judgeBreaches } from '../support/stack-under-load/find-breaches.ts'
import { connectQuietly } from '../support/stack-under-load/read-back.ts'
import {
  reportClients,
  type StackUnderLoad,
  withStackUnderLoad,
} from '../support/stack-under-load/stack-under-load.ts'
import { measureCapacity } from './capacity.ts'
import { injectFault, type SoakFault } from './faults.ts'
import {
  type Flatness,
  judgeConnections,
  judgeFlatness,
  type Sample,
  sampleProcesses,
  takeSamples,
  toFlatness,
} from './process-samples.ts'

const minuteMs = 60_000
const sampleMs = 10_000
const lagMaxMs = 30_000
/** A random sample: reading every device of an hour would take longer than an hour. */
const devicesMax = 20_000

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { minutes: 60, rate: 0, seed: randomSeed() })
  const { minutes, seed } = options
  const rate = options.rate || (await measureHalf(seed))
  print(`${minutes} minutes at ${rate} events/s, --seed ${seed}`)
  const load = { seed, ratePerSecond: rate, tenants: 3, eventsPerDevice: 40 }
  await withStackUnderLoad(load, async (stack) => {
    const endSampling = sampleProcesses(stack.running, sampleMs)
    const faults = await injectFaults(stack, minutes, seed)
    const samples = endSampling()
    const flatness = toFlatness(samples)
    const file = join(tmpdir(), `soak-${seed}.json`)
    writeFileSync(file, JSON.stringify(samples))
    print(`samples of every process, one each ten seconds: ${file}`)
    const findings = await findBreaches({
      ...stack,
      devicesMax,
      random: createRandom(seed, 'comparison'),
      onStep: (line) => print(`  ${line}`),
    })
    // Load and users have ended before the comparison, which calls the API itself.
    await pause(keepAliveTimeoutMs + 5_000)
    const idle = takeSamples(stack.running)
    reportFaults(faults)
    reportFlatness(flatness)
    reportConnections(samples, idle)
    reportClients(stack, findings)
    reportBroken([
      ...judgeLags(faults),
      ...judgeFlatness(flatness),
      ...judgeConnections(samples, idle),
      ...judgeBreaches(findings),
    ])
  })
}

async function measureHalf(seed: number): Promise<number> {
  const capacity = await measureCapacity(seed, ({ rate, accepted, behindMs, held }) => {
    const behind = behindMs === null ? 'backlog stays' : `no backlog after ${seconds(behindMs)}`
    print(`  ${rate} events/s: ${accepted} accepted, ${behind}: ${held ? 'held' : 'too much'}`)
  })
  return Math.round(capacity / 2)
}

/** One fault per minute, at a random moment of its first ten seconds. */
async function injectFaults(
  { running, load }: StackUnderLoad,
  minutes: number,
  seed: number,
): Promise<SoakFault[]> {
  const random = createRandom(seed, 'faults')
  const nats = await connectQuietly(running.stack)
  const faults: SoakFault[] = []
  const startedMs = performance.now()
  try {
    for (let minute = 0; minute < minutes; minute++) {
      await pause(random.int(0, 10_000))
      const fault = await injectFault(running, nats, random)
      faults.push(fault)
      const { size } = load.accepted
      print(
        `  minute ${minute + 1}: ${describeFault(fault)}; ${size} accepted, ${load.open()} open`,
      )
      await pause(Math.max(0, startedMs + (minute + 1) * minuteMs - performance.now()))
    }
    return faults
  } finally {
    await nats.close()
  }
}

function describeFault({ kind, child, lastedMs, hits, lagMs, pendingMax }: SoakFault): string {
  const lasted = kind === 'killed' ? '' : ` for ${Math.round(lastedMs / 1_000)} s`
  const level = lagMs === null ? 'backlog stays' : `no backlog after ${seconds(lagMs)}`
  return `${child} ${kind}${lasted} (${hits} hit), ${pendingMax} messages waiting, ${level}`
}

function reportFaults(faults: readonly SoakFault[]): void {
  const kinds = Map.groupBy(faults, ({ kind, child }) => `${child} ${kind}`)
  for (const [what, own] of kinds) {
    const lags = own.map(({ lagMs }) => lagMs ?? Infinity)
    const [median, most] = [0.5, 1].map((rank) => (percentile(lags, rank) / 1_000).toFixed(1))
    const hits = own.reduce((sum, fault) => sum + fault.hits, 0)
    print(
      `${what}: ${own.length} times, ${hits} processes hit; no backlog after ${median} s, at most`,
    )
    print(`  ${most} s`)
  }
}

function reportFlatness(children: readonly Flatness[]): void {
  for (const { child, lives, judgedMinutes, megabytes, files } of children) {
    const perHour = (slope: number) =>
      Number.isNaN(slope) ? 'too short a life to judge' : `${slope.toFixed(1)} an hour`
    print(`${child}: ${lives} lives, ${judgedMinutes.toFixed(1)} minutes of them judged`)
    const thirds = [megabytes.usualFirst, megabytes.usualLast].map(Math.round).join(' and ')
    print(
      `  ${Math.round(megabytes.median)} MB, usually below ${thirds} in the first and last third,`,
    )
    print(`  at most ${Math.round(megabytes.most)};`)
    print(`  grows by ${perHour(megabytes.perHour)}; ${files.median} files, at most ${files.most},`)
    const between = `${files.usualFirst} and ${files.usualLast}`
    print(`  between bursts below ${between}, grow by ${perHour(files.perHour)}`)
  }
}

function reportConnections(samples: readonly Sample[], idle: readonly Sample[]): void {
  const held = idle.map(({ child, connections }) => {
    const most = samples
      .filter((sample) => sample.child === child)
      .reduce((max, sample) => Math.max(max, sample.connections), 0)
    return `${child} ${most} and ${connections}`
  })
  print(`connections at most, and after the load: ${held.join(', ')}`)
}

function judgeLags(faults: readonly SoakFault[]): string[] {
  return faults
    .filter(({ lagMs }) => lagMs === null || lagMs > lagMaxMs)
    .map((fault) => `a backlog for more than 30 s: ${describeFault(fault)}`)
}
