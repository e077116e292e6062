/**
 * `npm run faults -- soak [--minutes 60] [--rate R] [--seed S]`: a whole stack at half of what it
 * takes on this machine, which is measured first where no rate is given, with a random fault
 * every minute. Prints each fault and how long the consumers needed to be level again, what every
 * process held, and what was read back; ends with status 1 when that took longer than 30 s,
 * memory or open files grow, or anything accepted is lost or there twice.
 */
import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { keepAliveTimeoutMs } from '#shared/io/http/http-server.ts'
import { createRandom } from '../../../services/fleet/phones/random.ts'
import { percentile } from '../../support/process/percentile.ts'
import { describeCounts } from '../kills/kills.ts'
import { findBreaches, judgeBreaches } from '../support/stack-under-load/find-breaches.ts'
import { connectQuietly } from '../support/stack-under-load/read-back.ts'
import {
  type KillsWorld,
  readEvidence,
  withWorld,
} from '../support/stack-under-load/stack-under-load.ts'
import { measureCapacity } from './capacity.ts'
import { type SoakFault, suffer } from './faults.ts'
import {
  type Flatness,
  judgeConnections,
  judgeFlatness,
  type Sample,
  sampleParts,
  takeSamples,
  toFlatness,
} from './process-samples.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const minuteMs = 60_000
const sampleMs = 10_000
const lagMaxMs = 30_000
/** A seeded sample: reading every device of an hour would take longer than an hour. */
const devicesMax = 20_000

/** Runs the whole of it and prints the report. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '60' },
      rate: { type: 'string' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    },
  })
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
  const rate = values.rate === undefined ? await measureHalf(seed) : Number(values.rate)
  say(`${minutes} minutes at ${rate} events/s, --seed ${seed}`)
  const options = { seed, ratePerSecond: rate, tenants: 3, eventsPerDevice: 40 }
  await withWorld(options, async (world) => {
    const end = sampleParts(world.running, sampleMs)
    const faults = await sufferFor(world, minutes, seed)
    const samples = end()
    const flatness = toFlatness(samples)
    const file = join(tmpdir(), `soak-${seed}.json`)
    writeFileSync(file, JSON.stringify(samples))
    say(`what every process held, each ten seconds: ${file}`)
    const findings = await findBreaches({
      ...world,
      devicesMax,
      random: createRandom(seed, 'comparison'),
      onStep: (line) => say(`  ${line}`),
    })
    // Load and users have ended before the comparison, which asks the API itself.
    await pause(keepAliveTimeoutMs + 5_000)
    const idle = takeSamples(world.running)
    reportFaults(faults)
    reportFlatness(flatness)
    reportConnections(samples, idle)
    const evidence = readEvidence(world)
    say(`tries: ${describeCounts(world.load.outcomes)}; after an unknown one ${evidence.resolved}`)
    say(`publishes tried again ${evidence.retriedPublishes}, found stored already`)
    say(
      `  ${evidence.duplicatePublishes}; redelivered to the scorer ${evidence.redelivered.scorer}`,
    )
    say(`accepted: ${findings.accepted}, in the stream more than once: ${findings.storedTwice}`)
    say(`alerts: ${findings.alerts}, webhooks: ${findings.webhooks}, devices: ${findings.devices}`)
    const broken = [
      ...judgeLags(faults),
      ...judgeFlatness(flatness),
      ...judgeConnections(samples, idle),
      ...judgeBreaches(findings),
    ]
    for (const wrong of broken) say(`BROKEN: ${wrong}`)
    if (broken.length > 0) process.exitCode = 1
    else say('every promise held')
  })
}

async function measureHalf(seed: number): Promise<number> {
  const capacity = await measureCapacity(seed, ({ rate, accepted, behindMs, held }) => {
    const behind =
      behindMs === null ? 'not level' : `level after ${(behindMs / 1_000).toFixed(1)} s`
    say(`  ${rate} events/s: ${accepted} accepted, ${behind}: ${held ? 'held' : 'too much'}`)
  })
  return Math.round(capacity / 2)
}

/** One fault in each minute, at a random moment of its first ten seconds. */
async function sufferFor(
  { running, load }: KillsWorld,
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
      const fault = await suffer(running, nats, random)
      faults.push(fault)
      const { size } = load.accepted
      say(`  minute ${minute + 1}: ${describeFault(fault)}; ${size} accepted, ${load.open()} open`)
      await pause(Math.max(0, startedMs + (minute + 1) * minuteMs - performance.now()))
    }
    return faults
  } finally {
    await nats.close()
  }
}

function describeFault({ kind, child, lastedMs, hits, lagMs, pendingMax }: SoakFault): string {
  const lasted = kind === 'killed' ? '' : ` for ${Math.round(lastedMs / 1_000)} s`
  const level = lagMs === null ? 'not level again' : `level after ${(lagMs / 1_000).toFixed(1)} s`
  return `${child} ${kind}${lasted} (${hits} hit), ${pendingMax} messages waiting, ${level}`
}

function reportFaults(faults: readonly SoakFault[]): void {
  const kinds = Map.groupBy(faults, ({ kind, child }) => `${child} ${kind}`)
  for (const [what, own] of kinds) {
    const lags = own.map(({ lagMs }) => lagMs ?? Infinity)
    const [median, most] = [0.5, 1].map((rank) => (percentile(lags, rank) / 1_000).toFixed(1))
    const hits = own.reduce((sum, fault) => sum + fault.hits, 0)
    say(`${what}: ${own.length} times, ${hits} processes hit; level after ${median} s, at most`)
    say(`  ${most} s`)
  }
}

function reportFlatness(children: readonly Flatness[]): void {
  for (const { child, lives, judgedMinutes, megabytes, files } of children) {
    const perHour = (slope: number) =>
      Number.isNaN(slope) ? 'too short a life to say' : `${slope.toFixed(1)} an hour`
    say(`${child}: ${lives} lives, ${judgedMinutes.toFixed(1)} minutes of them judged`)
    const thirds = [megabytes.usualFirst, megabytes.usualLast].map(Math.round).join(' and ')
    say(
      `  ${Math.round(megabytes.median)} MB, usually below ${thirds} in the first and last third,`,
    )
    say(`  at most ${Math.round(megabytes.most)};`)
    say(`  grows by ${perHour(megabytes.perHour)}; ${files.median} files, at most ${files.most},`)
    const between = `${files.usualFirst} and ${files.usualLast}`
    say(`  between bursts below ${between}, grow by ${perHour(files.perHour)}`)
  }
}

function reportConnections(samples: readonly Sample[], idle: readonly Sample[]): void {
  const held = idle.map(({ child, connections }) => {
    const most = samples
      .filter((sample) => sample.child === child)
      .reduce((max, sample) => Math.max(max, sample.connections), 0)
    return `${child} ${most} and ${connections}`
  })
  say(`connections at most, and when nobody used them any more: ${held.join(', ')}`)
}

function judgeLags(faults: readonly SoakFault[]): string[] {
  return faults
    .filter(({ lagMs }) => lagMs === null || lagMs > lagMaxMs)
    .map((fault) => `a backlog for more than 30 s: ${describeFault(fault)}`)
}
