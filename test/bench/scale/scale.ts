/**
 * `npm run bench -- scale [--rate 150] [--events 2400]`: the work that an event makes in one of
 * each process, on two ClickHouse shards, on two telemetry streams, and in two and three of each
 * process. Work is counted (messages, statements, rows, bytes), because two cores cannot show
 * whether more machines are faster; the CPU is context. What the idle stack does is subtracted.
 * Each layout is a new stack that gets the same events of two tenants' fleets. Void unless every
 * fleet finds everything in place.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Summary } from '../../../deploy/fleet/check/summary.ts'
import { openSecrets } from '../../../deploy/local/stack/state-files.ts'
import { startStack, type TestStack } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'
import { runFleetCommand } from '../fleet-command.ts'
import { type MeasuredService, readCpuSeconds, startMeasured } from '../measured-process.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion, single } from '../report.ts'
import { toSpread } from '../spread.ts'
import { readCpu, type Usage } from '../stack-usage.ts'
import {
  type Counts,
  openWorkReader,
  type Stage,
  stages,
  sumOf,
  type Work,
} from './counted-work.ts'

/** For what a start leaves to do. */
const restSeconds = 4
const idleSeconds = 10
const limitMs = 120_000
/** Of the events, at each stage: less was counted when too much waited. */
const countedShareMin = 0.8
/** Events before the counted ones, for caches and compilers, and after them. */
const warmUpEvents = 300
const restEvents = 300

type Layout = { name: string; shards: number; streams: number; processes: number }

const layouts: Layout[] = [
  { name: 'one of each', shards: 1, streams: 1, processes: 1 },
  { name: 'two shards', shards: 2, streams: 1, processes: 1 },
  { name: 'two streams', shards: 1, streams: 2, processes: 1 },
  { name: 'two of each process', shards: 1, streams: 1, processes: 2 },
  { name: 'three of each process', shards: 1, streams: 1, processes: 3 },
]
/** Tenants, each with its own fleet: a tenant's events are on one stream. */
const fleets = 2

type Multiplied = 'ingest' | 'scorer' | 'delivery' | 'api'
const multiplied: Multiplied[] = ['ingest', 'scorer', 'delivery', 'api']

type Snapshot = Work & {
  atMs: number
  cpu: Usage
}

type Span = { from: Snapshot; to: Snapshot }
type Measured = {
  layout: Layout
  /** That should have been counted. */
  events: number
  idle: Span
  busy: Span
  summaries: Summary[]
  version: string
}

/** Runs it and reports. */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rate: { type: 'string', default: '150' },
      events: { type: 'string', default: '2400' },
    },
  })
  const all: Measured[] = []
  for (const layout of layouts) {
    all.push(await measure(layout, Number(values.rate), Number(values.events)))
  }
  publishReport({
    part: 'scale',
    command: ['npm run bench -- scale', ...args].join(' '),
    versions: { clickhouse: all[0]!.version },
    durability: 'JetStream sync_interval: always, Postgres fsync on, ClickHouse as it comes',
    figures: toFigures(all),
    checks: all.flatMap(toChecks),
  })
}

async function measure(layout: Layout, rate: number, events: number): Promise<Measured> {
  const test = await startStack({
    args: layout.shards === 1 ? [] : ['--shards', `${layout.shards}`],
    env: { REUSE_PORT: '1', TELEMETRY_STREAMS: `${layout.streams}` },
  })
  const closing: (() => unknown)[] = [test.discard]
  try {
    const more: { name: Multiplied; number: number; service: MeasuredService }[] = []
    for (let number = 2; number <= layout.processes; number++) {
      for (const name of multiplied) {
        const service = await startMeasured(name, toEnv(test, layout.streams))
        closing.push(service.stop)
        more.push({ name, number, service })
      }
    }
    const { stack } = test
    const internalUrlsOf = (name: Multiplied) => [
      stack.internal[name],
      ...more.filter((one) => one.name === name).map(({ service }) => service.internalUrl),
    ]
    const reader = await openWorkReader(stack, {
      ingest: internalUrlsOf('ingest'),
      scorer: internalUrlsOf('scorer'),
      delivery: internalUrlsOf('delivery'),
    })
    closing.push(reader.close)
    const snapshot = async (): Promise<Snapshot> => {
      const cpu = readCpu(test)
      for (const { name, number, service } of more) {
        cpu[`${name}-${number}`] = readCpuSeconds(service.pid)
      }
      const atMs = performance.now()
      return { atMs, cpu, ...(await reader.read()) }
    }
    const during = async (isOver: () => Promise<unknown>): Promise<Span> => {
      const from = await snapshot()
      await isOver()
      return { from, to: await snapshot() }
    }
    const decided = (count: number) =>
      until(`${count} events`, async () => sumOf(await reader.readDecided()) >= count, limitMs)
    await pause(restSeconds * 1_000)
    const idle = await during(() => pause(idleSeconds * 1_000))
    const seconds = (warmUpEvents + events + restEvents) / rate
    const each = { rate: rate / fleets, devices: (rate / fleets) * 5, seconds }
    const ending = Promise.all(Array.from({ length: fleets }, () => runFleetCommand(test, each)))
    // Without a summary the events do not come either, which fails below.
    ending.catch(() => undefined)
    await decided(warmUpEvents)
    const busy = await during(() => decided(warmUpEvents + events))
    const clickhouse = createClickhouse(stack.clickhouse, { name: 'bench' })
    closing.push(() => clickhouse.close())
    const version = await readClickhouseVersion(clickhouse)
    return { layout, events, idle, busy, summaries: await ending, version }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

/** The settings of further processes. Edges share an address, and so do APIs. */
const toEnv = ({ stack, dataDir }: TestStack, streams: number): Record<string, string> => ({
  NATS_URL: stack.nats,
  POSTGRES_URL: stack.postgres,
  CLICKHOUSE_URL: stack.clickhouse,
  MASTER_KEY: openSecrets(dataDir).master_key,
  TELEMETRY_STREAMS: `${streams}`,
  ALLOW_PRIVATE_WEBHOOKS: '1',
  INGEST_LISTEN: new URL(stack.ingest).host,
  API_LISTEN: new URL(stack.api).host,
  REUSE_PORT: '1',
})

const eventsOf = ({ from, to }: Span, stage: Stage): number =>
  sumOf(to.events[stage]) - sumOf(from.events[stage])
const secondsOf = ({ from, to }: Span): number => (to.atMs - from.atMs) / 1_000

/** For 1,000 events of a stage, without what the idle stack does in the same time. */
function toEach(
  { idle, busy }: Measured,
  stage: Stage,
  read: (snapshot: Snapshot) => Counts,
): Counts {
  const growth = ({ from, to }: Span, name: string) => read(to)[name]! - (read(from)[name] ?? 0)
  const times = secondsOf(busy) / secondsOf(idle)
  return Object.fromEntries(
    Object.keys(read(busy.to)).map((name) => [
      name,
      ((growth(busy, name) - growth(idle, name) * times) * 1_000) / eventsOf(busy, stage),
    ]),
  )
}

/** CPU in ms of each kind of process: `clickhouse` and `clickhouse-2` are one. */
function toCpuMs({ cpu }: Snapshot): Counts {
  const ms: Counts = {}
  for (const [name, seconds] of Object.entries(cpu)) {
    const key = `CPU in ms, ${name.replace(/-\d+$/, '')}`
    ms[key] = (ms[key] ?? 0) + seconds * 1_000
  }
  return ms
}

/** The first layout is the baseline of the others. */
function toFigures(all: readonly Measured[]): Figure[] {
  const works = all.map(
    (measured): Counts => ({
      ...toEach(measured, 'accepted', ({ counts }) => counts.accepted),
      ...toEach(measured, 'stored', ({ counts }) => counts.stored),
      ...toEach(measured, 'decided', ({ counts }) => counts.decided),
      ...toEach(measured, 'stored', toCpuMs),
    }),
  )
  return all.flatMap(({ layout, busy }, at) => [
    ...stages.map((stage) => single(`${layout.name}: events ${stage}`, '', eventsOf(busy, stage))),
    ...Object.entries(works[at]!).map(([what, value]): Figure => {
      const figure = { name: `${layout.name}: ${what}`, unit: '', value: toSpread([value]) }
      if (at === 0) return figure
      const beside = works[0]![what]!
      return {
        ...figure,
        baseline: { name: all[0]!.layout.name, value: toSpread([beside]) },
        ratio: toSpread([value / beside]),
      }
    }),
  ])
}

function toChecks({ layout, events, busy, summaries }: Measured): Check[] {
  const accepted = sumOf(summaries.map((summary) => summary.accepted))
  const mismatches = summaries.flatMap((summary) => summary.mismatches)
  const ok = summaries.every((summary) => summary.ok)
  const grown = (read: (snapshot: Snapshot) => number[]) =>
    read(busy.to).map((value, at) => value - read(busy.from)[at]!)
  const shares = {
    'accepted by edge': grown(({ events }) => events.accepted),
    'stored by scorer': grown(({ events }) => events.stored),
    'rows by engine': grown(({ written }) => written),
    'messages by stream': grown(({ messages }) => messages),
  }
  return [
    {
      name: `${layout.name}: everything is in place`,
      ok: ok && accepted > 0,
      detail: `${accepted} accepted, ${mismatches.length} mismatches`,
    },
    {
      name: `${layout.name}: every stage had the events`,
      ok: stages.every((stage) => eventsOf(busy, stage) >= events * countedShareMin),
      detail: stages.map((stage) => `${eventsOf(busy, stage)} ${stage}`).join(', '),
    },
    {
      name: `${layout.name}: every process, shard and stream had a part`,
      ok: Object.values(shares).every((share) => share.every((one) => one > 0)),
      detail: Object.entries(shares)
        .map(([name, share]) => `${name} ${share.join(' and ')}`)
        .join(', '),
    },
  ]
}
