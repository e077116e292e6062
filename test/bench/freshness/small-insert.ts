/**
 * `npm run bench -- small-insert [--rate 10] [--seconds 60] [--probe-seconds 40]`: the whole local
 * stack at a low rate, where an insert has a handful of rows. Reports the CPU of each process with
 * and without events, the cost of an insert of events for ClickHouse with all its effects (views,
 * reconciliation, risk features, replication, merges), the parts that each table gets, and the time
 * of an accepted event to the device API. Probes cost CPU, so they run after the CPU was measured.
 * Void unless every submission is answered with 200 and stored once.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { percentile } from '../../support/process/percentile.ts'
import { startStack } from '../../support/process/stack.ts'
import { readPairs } from '../read-pairs.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion, single } from '../report.ts'
import { readCpu, readSums, type Usage } from '../stack-usage.ts'
import type { FleetOrder, FleetResult } from './freshness-load.ts'
import { type ProbeResult, startProbes } from './freshness-probes.ts'
import { type FreshnessRig, openFreshnessRig } from './freshness-rig.ts'

type Options = { rate: number; seconds: number; probeSeconds: number }

/** For caches and compilers to become warm. */
const warmUpSeconds = 15
/** For the merges after the warm-up to end. */
const restSeconds = 10
const idleSeconds = 20
const connections = 4
const settleMaxMs = 30_000

type Snapshot = {
  atMs: number
  cpu: Usage
  /** Inserts of events. */
  batches: number
  /** Counters of ClickHouse. */
  counters: Record<string, number>
  /** Parts that inserts made, by table. */
  parts: Record<string, number>
}

type Measured = {
  /** The statuses of all submissions of the fleet. */
  statuses: number[]
  probes: ProbeResult
  idle: { from: Snapshot; to: Snapshot }
  busy: { from: Snapshot; to: Snapshot }
}

/** Runs it and reports. */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rate: { type: 'string', default: '10' },
      seconds: { type: 'string', default: '60' },
      'probe-seconds': { type: 'string', default: '40' },
    },
  })
  const options: Options = {
    rate: Number(values.rate),
    seconds: Number(values.seconds),
    probeSeconds: Number(values['probe-seconds']),
  }
  const test = await startStack()
  const closing: (() => unknown)[] = [test.discard]
  try {
    const rig = await openFreshnessRig(test, closing)
    const measured = await measure(rig, options)
    publishReport({
      part: 'small-insert',
      command: ['npm run bench -- small-insert', ...args].join(' '),
      versions: { clickhouse: await readClickhouseVersion(rig.clickhouse) },
      durability: 'JetStream sync_interval: always, Postgres fsync on, ClickHouse as it comes',
      figures: [...toCpu(measured), ...toInserts(measured), ...toLatencies(measured)],
      checks: await check(rig, measured),
    })
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function measure(
  rig: FreshnessRig,
  { rate, seconds, probeSeconds }: Options,
): Promise<Measured> {
  const warmUp = await startFleet(rig, rate, warmUpSeconds)
  const warm = await warmUp.ending
  await pause(restSeconds * 1_000)
  const idle = await during(rig, idleSeconds)
  const { ending } = await startFleet(rig, rate, warmUpSeconds + seconds + probeSeconds)
  await pause(warmUpSeconds * 1_000)
  const busy = await during(rig, seconds)
  const probes = startProbes(rig.test.stack, rig.tenant)
  const fleet = await ending
  const seen = await probes.stop()
  return { statuses: [...warm.statuses, ...fleet.statuses], probes: seen, idle, busy }
}

async function startFleet({ test, tenant, fleet }: FreshnessRig, rate: number, seconds: number) {
  const order: FleetOrder = {
    port: Number(new URL(test.stack.ingest).port),
    tenantId: tenant.tenant_id,
    secret: tenant.hmac_secret,
    run: randomBytes(4).toString('hex'),
    rate,
    seconds,
    connections,
  }
  await fleet.request(order)
  const ending = new Promise<FleetResult>((resolve) => fleet.child.once('message', resolve))
  return { ending }
}

async function during(
  rig: FreshnessRig,
  seconds: number,
): Promise<{ from: Snapshot; to: Snapshot }> {
  const from = await snapshot(rig)
  await pause(seconds * 1_000)
  return { from, to: await snapshot(rig) }
}

async function snapshot({ test, clickhouse }: FreshnessRig): Promise<Snapshot> {
  const cpu = readCpu(test)
  const atMs = performance.now()
  const sums = await readSums(test.stack.internal.scorer)
  const batches = [...sums].find(([name]) => name.startsWith('di_insert_rows'))?.[1].count ?? 0
  const counters = await readPairs(
    clickhouse,
    `select event, value from system.events
     where event in ('InsertQuery', 'SelectQuery', 'Merge', 'MergesTimeMilliseconds')`,
  )
  // The blocks of a table's inserts are numbered; merges keep the numbers.
  const parts = await readPairs(
    clickhouse,
    `select table, sum(last) from (
       select table, partition_id, max(max_block_number) as last
       from system.parts where active group by table, partition_id)
     group by table`,
  )
  return { atMs, cpu, batches, counters, parts }
}

const cpuMaxMs = 100
const insertMaxMs = 40
const visibleMaxMs = 1_000

type Span = Measured['idle']

const secondsOf = ({ from, to }: Span): number => (to.atMs - from.atMs) / 1_000

/** CPU of a process in a time span, in ms per second. */
const cpuOf = (span: Span, name: string): number =>
  ((span.to.cpu[name]! - span.from.cpu[name]!) * 1_000) / secondsOf(span)

function toCpu({ idle, busy }: Measured): Figure[] {
  const names = Object.keys(busy.from.cpu)
  const sum = (span: Span) => names.reduce((total, name) => total + cpuOf(span, name), 0)
  return [
    ...names.flatMap((name) => [
      single(`CPU of a second, idle: ${name}`, 'ms', cpuOf(idle, name)),
      single(`CPU of a second: ${name}`, 'ms', cpuOf(busy, name)),
    ]),
    single('CPU of a second, idle: all of the stack', 'ms', sum(idle)),
    single('CPU of a second: all of the stack', 'ms', sum(busy), cpuMaxMs),
  ]
}

function toInserts({ idle, busy }: Measured): Figure[] {
  const seconds = secondsOf(busy)
  const batches = (busy.to.batches - busy.from.batches) / seconds
  const more = cpuOf(busy, 'clickhouse') - cpuOf(idle, 'clickhouse')
  const counted = (span: Span, name: string) =>
    ((span.to.counters[name] ?? 0) - (span.from.counters[name] ?? 0)) / secondsOf(span)
  const tables = Object.keys(busy.to.parts)
    .map((table): [string, number] => {
      const made = busy.to.parts[table]! - (busy.from.parts[table] ?? 0)
      return [table, made / seconds]
    })
    .filter(([, made]) => made > 0)
    .sort(([, a], [, b]) => b - a)
  return [
    single('inserts of events, each second', '', batches),
    single('ClickHouse CPU of one, idle subtracted', 'ms', more / batches, insertMaxMs),
    single(
      'ClickHouse statements that insert, idle, each second',
      '',
      counted(idle, 'InsertQuery'),
    ),
    single('ClickHouse statements that insert, each second', '', counted(busy, 'InsertQuery')),
    single(
      'ClickHouse statements that select, idle, each second',
      '',
      counted(idle, 'SelectQuery'),
    ),
    single('ClickHouse statements that select, each second', '', counted(busy, 'SelectQuery')),
    single('merges, each second', '', counted(busy, 'Merge')),
    single('time in merges, each second', 'ms', counted(busy, 'MergesTimeMilliseconds')),
    ...tables.map(([table, made]) => single(`parts of ${table}, each second`, '', made)),
  ]
}

function toLatencies({ probes }: Measured): Figure[] {
  const visible = probes.seen.map(({ tookMs }) => tookMs)
  const name = 'accepted to visible in the device API'
  return [
    single(`${name} p50 (of ${visible.length})`, 'ms', percentile(visible, 0.5)),
    single(`${name} p99`, 'ms', percentile(visible, 0.99), visibleMaxMs),
    single(`${name} max`, 'ms', percentile(visible, 1)),
  ]
}

async function check(rig: FreshnessRig, { statuses, probes, busy }: Measured): Promise<Check[]> {
  const accepted = statuses.filter((status) => status === 200).length
  const other = statuses.length - accepted
  return [
    {
      name: 'every submission was answered 200',
      ok: other === 0,
      detail: `${accepted}, and ${other} otherwise`,
    },
    await checkStored(rig, accepted),
    {
      name: 'every probe was seen',
      ok: probes.failed === 0 && probes.seen.length > 0,
      detail: `${probes.seen.length} in ${probes.looks} looks, ${probes.failed} not`,
    },
    {
      name: 'events were inserted while the CPU was measured',
      ok: busy.to.batches > busy.from.batches,
      detail: `${busy.to.batches - busy.from.batches} inserts`,
    },
  ]
}

/** Waits until everything has arrived: it checks what is stored, not how soon. */
async function checkStored({ clickhouse, tenant }: FreshnessRig, accepted: number): Promise<Check> {
  const limitMs = performance.now() + settleMaxMs
  let stored: Record<string, number> = {}
  do {
    const result = await clickhouse.query({
      query: `select count() as rows, uniqExact(event_id) as events from telemetry final
        where tenant_id = {tenant:String} and startsWith(session_id, 'session-')`,
      query_params: { tenant: tenant.tenant_id },
      format: 'JSONEachRow',
    })
    stored = (await result.json<Record<string, number>>())[0]!
  } while (stored.rows! < accepted && performance.now() < limitMs && (await pause(500, true)))
  return {
    name: 'what was answered 200 is in ClickHouse, once',
    ok: stored.rows === accepted && stored.events === accepted,
    detail: `${accepted} answered, ${stored.rows} rows of ${stored.events} events`,
  }
}
