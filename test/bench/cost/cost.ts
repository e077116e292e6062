/**
 * `npm run bench -- cost [--rates 10,40,100,500,2000] [--seconds 60]`: what the whole local stack
 * uses when it is idle and at each rate of events: CPU of each process, memory, and bytes on disk.
 * The events are those of `di fleet`, which also checks that everything arrived; its own CPU is not
 * counted. Void unless every run of the fleet finds everything in place.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Summary } from '../../../deploy/fleet/check/summary.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { untilMergesEnd } from '../drain/merges.ts'
import { runFleetCommand } from '../fleet-command.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion, single } from '../report.ts'
import { readCpu, readPss, type Usage } from '../stack-usage.ts'
import { type Bytes, readBytes } from './stored-bytes.ts'

/** For caches and compilers to become warm, and for the fleet to make its tenant. */
const warmUpSeconds = 15
/** For what a start or a run leaves to do. */
const restSeconds = 20
const mergeLimitMs = 120_000

/** Bounds of the whole stack: CPU in ms of a second by rate, 0 for idle; memory in MB. */
const cpuMax: Record<number, number> = { 0: 20, 10: 100, 40: 150, 100: 250, 500: 600, 2000: 1_000 }
const idleMemoryMax = 700
/** Bytes of an event in ClickHouse, its body included. */
const bytesMax = 700

/** CPU of each process in ms of a second. */
type Measured = { rate: number; cpu: Usage; memoryMb: number }
type Run = Measured & { summary: Summary }

/** Runs it and reports. */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rates: { type: 'string', default: '10,40,100,500,2000' },
      seconds: { type: 'string', default: '60' },
    },
  })
  const seconds = Number(values.seconds)
  const test = await startStack()
  const clickhouse = createClickhouse(test.stack.clickhouse, { name: 'bench' })
  try {
    await pause(restSeconds * 1_000)
    const idle = await measure(test, 0, seconds)
    const empty = await readBytes(test.stack, clickhouse)
    const runs: Run[] = []
    for (const rate of values.rates.split(',').map(Number)) {
      runs.push(await runFleet(test, rate, seconds))
      await pause(restSeconds * 1_000)
    }
    await untilMergesEnd(clickhouse, mergeLimitMs)
    const full = await readBytes(test.stack, clickhouse)
    publishReport({
      part: 'cost',
      command: ['npm run bench -- cost', ...args].join(' '),
      versions: { clickhouse: await readClickhouseVersion(clickhouse) },
      durability: 'JetStream sync_interval: always, Postgres fsync on, ClickHouse as it comes',
      figures: [
        ...[idle, ...runs].flatMap(toUsage),
        ...runs.map(toMillion),
        ...toBytesEach(empty, full, runs),
      ],
      checks: runs.map(toCheck),
    })
  } finally {
    await clickhouse.close()
    await test.discard()
  }
}

async function measure(test: TestStack, rate: number, seconds: number): Promise<Measured> {
  const from = readCpu(test)
  const fromMs = performance.now()
  await pause(seconds * 1_000)
  const to = readCpu(test)
  const passed = (performance.now() - fromMs) / 1_000
  const cpu = Object.fromEntries(
    Object.keys(to).map((name) => [name, ((to[name]! - from[name]!) * 1_000) / passed]),
  )
  return { rate, cpu, memoryMb: sum(readPss(test)) }
}

/** Starts a fleet and measures in the middle of its sending. */
async function runFleet(test: TestStack, rate: number, seconds: number): Promise<Run> {
  const devices = Math.max(100, rate * 10)
  const ending = runFleetCommand(test, { rate, devices, seconds: warmUpSeconds + seconds })
  await pause(warmUpSeconds * 1_000)
  const measured = await measure(test, rate, seconds)
  return { ...measured, summary: await ending }
}

const sum = (usage: Usage): number => Object.values(usage).reduce((total, one) => total + one, 0)

function toUsage({ rate, cpu, memoryMb }: Measured): Figure[] {
  const at = rate === 0 ? 'idle' : `${rate}/s`
  return [
    single(`${at}: CPU of a second, all`, 'ms', sum(cpu), cpuMax[rate]),
    ...Object.entries(cpu).map(([name, ms]) => single(`${at}: CPU of a second, ${name}`, 'ms', ms)),
    single(`${at}: memory, all`, 'MB', memoryMb, rate === 0 ? idleMemoryMax : undefined),
  ]
}

function toMillion({ rate, cpu }: Run): Figure {
  return single(`${rate}/s: CPU of a million events`, 's', (sum(cpu) / rate) * 1_000)
}

function toBytesEach(empty: Bytes, full: Bytes, runs: readonly Run[]): Figure[] {
  const events = runs.reduce((total, { summary }) => total + summary.accepted, 0)
  const each = (of: (bytes: Bytes) => number) => (of(full) - of(empty)) / events
  const tables = Object.keys(full.tables)
    .map((table) => [table, each(({ tables }) => tables[table] ?? 0)] as const)
    .filter(([, bytes]) => bytes >= 1)
    .sort(([, a], [, b]) => b - a)
  return [
    single('an event in ClickHouse', 'bytes', each(toTotal), bytesMax),
    ...tables.map(([table, bytes]) => single(`an event in ${table}`, 'bytes', bytes)),
    single(
      'an event in JetStream',
      'bytes',
      each(({ jetstream }) => jetstream),
    ),
    single(
      'an event in Postgres',
      'bytes',
      each(({ postgres }) => postgres),
    ),
  ]
}

const toTotal = ({ tables }: Bytes): number => sum(tables)

function toCheck({ rate, summary }: Run): Check {
  const { accepted, ok, mismatches } = summary
  return {
    name: `everything of ${rate}/s is in place`,
    ok: ok && accepted > 0,
    detail: `${accepted} accepted, ${mismatches.length} mismatches`,
  }
}
