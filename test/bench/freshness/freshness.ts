/**
 * `npm run bench -- freshness [--rate 2000] [--seconds 60] [--memory-minutes 5] [--activity 0]`:
 * the whole local stack, as `npm start` runs it, under a fleet that submits at a constant rate.
 * Reports the time of an accepted event to the device API and to the tenant's backend, the CPU of
 * each process per event, the stages of a batch's time, and the memory of each process after some
 * minutes; 0 minutes judge no memory. `--activity` starts with this number of rows of other
 * devices' activity, three per event. Void unless every event with a 200 is stored once, every
 * expected alert was raised once and every webhook is genuine.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { connectNats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { read } from '../../support/http/tenant-client.ts'
import { percentile } from '../../support/process/percentile.ts'
import { type StackFacts, startStack } from '../../support/process/stack.ts'
import { untilMergesEnd } from '../drain/merges.ts'
import { fillActivity, rowsPerEvent } from '../history/activity-rows.ts'
import { readCpuSeconds } from '../measured-process.ts'
import {
  type Check,
  type Figure,
  publishReport,
  readClickhouseVersion,
  readPostgresVersion,
  single,
} from '../report.ts'
import {
  type MemorySample,
  readCpu,
  readSums,
  type Sums,
  sampleMemory,
  toMeans,
  toSlope,
  type Usage,
} from '../stack-usage.ts'
import { alertEvery, fromSessionId } from './freshness-bodies.ts'
import type { FleetOrder, FleetResult } from './freshness-load.ts'
import { type ProbeResult, startProbes } from './freshness-probes.ts'
import type { ReceiverReport } from './freshness-receiver.ts'
import { type FreshnessRig, openFreshnessRig } from './freshness-rig.ts'

type Options = { rate: number; seconds: number; memoryMinutes: number; activity: number }

/** For caches and compilers to become warm; the measurement starts at its end. */
const warmUpSeconds = 10
const connections = 64
const settleMaxMs = 60_000
const mergeLimitMs = 120_000
/** In ms by rate, where it is stricter than at others. */
const p99Max: Record<number, number> = { 500: 500 }
/** In 1,000,000 bytes. */
const memoryMax: Record<string, number> = { ingest: 160, api: 160, delivery: 160, scorer: 250 }
/** MB per minute that count as no growth: at 2,000/s they are 17 bytes per event. */
const growthMax = 2

type Snapshot = { atMs: number; cpu: Usage; scorer: Sums; delivery: Sums }

type Measured = {
  fleet: FleetResult
  probes: ProbeResult
  received: ReceiverReport
  memory: MemorySample[]
  from: Snapshot
  to: Snapshot
}

/** Runs it and reports. */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rate: { type: 'string', default: '2000' },
      seconds: { type: 'string', default: '60' },
      'memory-minutes': { type: 'string', default: '5' },
      activity: { type: 'string', default: '0' },
    },
  })
  const options: Options = {
    rate: Number(values.rate),
    seconds: Number(values.seconds),
    memoryMinutes: Number(values['memory-minutes']),
    activity: Number(values.activity),
  }
  const test = await startStack()
  const closing: (() => unknown)[] = [test.discard]
  try {
    const rig = await openFreshnessRig(test, closing)
    if (options.activity > 0) await addActivity(rig, options)
    const measured = await measure(rig, options)
    const checks = await check(rig, measured)
    publishReport({
      part: `freshness at ${options.rate}/s`,
      command: ['npm run bench -- freshness', ...args].join(' '),
      versions: await readVersions(rig),
      durability: 'JetStream sync_interval: always, Postgres fsync on, ClickHouse as it comes',
      figures: [
        ...toLatencies(measured, options),
        ...toStages(measured),
        ...toCpu(measured, options),
        ...toMemory(measured, options),
      ],
      checks,
    })
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function addActivity(
  { clickhouse, tenant }: FreshnessRig,
  { activity }: Options,
): Promise<void> {
  const to = Math.ceil(activity / rowsPerEvent)
  await fillActivity(clickhouse, { tenantId: tenant.tenant_id, from: 0, to })
  await untilMergesEnd(clickhouse, mergeLimitMs)
}

async function measure(rig: FreshnessRig, options: Options): Promise<Measured> {
  const { test, tenant, receiver } = rig
  const { stack } = test
  const measuredSeconds = Math.max(warmUpSeconds + options.seconds, options.memoryMinutes * 60)
  const order: FleetOrder = {
    port: Number(new URL(stack.ingest).port),
    tenantId: tenant.tenant_id,
    secret: tenant.hmac_secret,
    run: randomBytes(4).toString('hex'),
    rate: options.rate,
    seconds: measuredSeconds,
    connections,
  }
  const { begun } = await rig.fleet.request<{ begun: number }>(order)
  const ending = new Promise<FleetResult>((resolve) => rig.fleet.child.once('message', resolve))
  const stopSampling = sampleMemory(test)
  const untilMs = (atMs: number) => pause(Math.max(0, atMs - nowMs()))
  await untilMs(begun + warmUpSeconds * 1_000)
  const probes = startProbes(stack, tenant)
  const from = await snapshot(rig)
  await untilMs(from.atMs + options.seconds * 1_000)
  const to = await snapshot(rig)
  const seen = await probes.stop()
  const fleet = await ending
  const memory = stopSampling()
  const due = fleet.statuses.filter((status, n) => status === 200 && n % alertEvery === 0).length
  const limitMs = nowMs() + settleMaxMs
  while ((await receiver.request<number>('count')) < due && nowMs() < limitMs) await pause(200)
  // A duplicate would arrive within this time.
  await pause(2_000)
  const received = await receiver.request<ReceiverReport>('report')
  return { fleet, probes: seen, received, memory, from, to }
}

const nowMs = () => performance.timeOrigin + performance.now()

async function snapshot({ test, fleet, receiver }: FreshnessRig): Promise<Snapshot> {
  const { stack } = test
  const [scorer, delivery] = await Promise.all([
    readSums(stack.internal.scorer),
    readSums(stack.internal.delivery),
  ])
  const cpu = {
    ...readCpu(test),
    'fleet, generated': readCpuSeconds(fleet.child.pid!),
    'webhook receiver': readCpuSeconds(receiver.child.pid!),
    'probes and measuring': readCpuSeconds(process.pid),
  }
  return { atMs: nowMs(), cpu, scorer, delivery }
}

function toLatencies({ fleet, probes, received, from, to }: Measured, { rate }: Options): Figure[] {
  const isIn = (atMs: number) => atMs >= from.atMs && atMs < to.atMs
  const dueMs = (n: number) => fleet.startMs + (n * 1_000) / rate
  const answers: number[] = []
  fleet.tookMs.forEach((took, n) => {
    if (isIn(dueMs(n))) answers.push(took)
  })
  const acceptedMs = (n: number) => dueMs(n) + fleet.tookMs[n]!
  const alerts = received.alerts
    .map((alert) => ({ ...alert, acceptedMs: acceptedMs(fromSessionId(alert.sessionId)) }))
    .filter((alert) => isIn(alert.acceptedMs))
  const visible = probes.seen.filter((one) => isIn(one.acceptedMs)).map((one) => one.tookMs)
  const raised = alerts.map((alert) => alert.createdMs - alert.acceptedMs)
  const hooked = alerts.map((alert) => Math.max(0, alert.arrivedMs - alert.acceptedMs))
  const two = (name: string, values: number[], p50?: number, p99?: number) => [
    single(`${name} p50 (of ${values.length})`, 'ms', percentile(values, 0.5), p50),
    single(`${name} p99`, 'ms', percentile(values, 0.99), p99),
    single(`${name} max`, 'ms', percentile(values, 1)),
  ]
  return [
    ...two('accepted to visible in the device API', visible, 300, p99Max[rate] ?? 1_000),
    ...two('accepted to webhook received', hooked, 400, p99Max[rate] ?? 1_500),
    ...two('accepted to alert raised', raised),
    ...two('request due to answer', answers),
  ]
}

/** The time of each stage: means of the processes' own measurements. */
function toStages({ from, to }: Measured): Figure[] {
  const seconds = (to.atMs - from.atMs) / 1_000
  const steps = toMeans(from.scorer, to.scorer, /^di_(scorer_step|freshness)_seconds |^di_insert_/)
  const firstAttempts = toMeans(from.delivery, to.delivery, /^di_delivery_first_attempt/)
  return [...steps, ...firstAttempts].flatMap(({ key, mean, count }) => {
    const name = key
      .replace(/^di_/, '')
      .replace(/service="\w+",?/, '')
      .replace(/step="(\w+)"/, '$1')
      .trim()
    const rows = key.startsWith('di_insert_rows')
    return [
      single(`${name}, mean`, rows ? 'rows' : 'ms', rows ? mean : mean * 1_000),
      single(`${name}, each second`, '', count / seconds),
    ]
  })
}

function toCpu({ from, to }: Measured, { rate }: Options): Figure[] {
  const events = ((to.atMs - from.atMs) / 1_000) * rate
  const each = Object.keys(from.cpu).map(
    (name) => [name, ((to.cpu[name]! - from.cpu[name]!) / events) * 1e6] as const,
  )
  const own = each.filter(([name]) => !/generated|receiver|probes/.test(name))
  const figures = each.map(([name, us]) => single(`CPU of an event: ${name}`, 'µs', us))
  const sum = own.reduce((total, [, us]) => total + us, 0)
  return [...figures, single('CPU of an event: all of the stack', 'µs', sum)]
}

function toMemory({ memory }: Measured, { memoryMinutes }: Options): Figure[] {
  const last = memory.slice(-6)
  const half = memory.slice(memory.length >> 1)
  const judged = memoryMinutes > 0
  return Object.keys(memory[0]!.megabytes).flatMap((name) => {
    const atMost = judged ? memoryMax[name] : undefined
    const usedMb = percentile(
      last.map(({ megabytes }) => megabytes[name]!),
      0.5,
    )
    const growth = judged && atMost !== undefined ? growthMax : undefined
    return [
      single(`memory of ${name}`, 'MB', usedMb, atMost),
      single(`memory of ${name}, growth of the last half`, 'MB/min', toSlope(half, name), growth),
    ]
  })
}

async function check(rig: FreshnessRig, measured: Measured): Promise<Check[]> {
  const { fleet, probes, received } = measured
  const accepted: number[] = []
  fleet.statuses.forEach((status, n) => {
    if (status === 200) accepted.push(n)
  })
  const due = accepted.filter((n) => n % alertEvery === 0)
  const alerts = new Map(received.alerts.map((alert) => [alert.alertId, alert]))
  const sessions = new Set([...alerts.values()].map((alert) => fromSessionId(alert.sessionId)))
  const path = '/v1/di/alerts?limit=1'
  const { tenant, test } = rig
  const { body } = await read<{ total: number }>(test.stack, tenant.public_api_key, path)
  const other = fleet.statuses.length - accepted.length
  return [
    {
      name: 'every submission was answered 200',
      ok: other === 0,
      detail: `${accepted.length}, and ${other} otherwise`,
    },
    await checkStored(rig, accepted),
    {
      name: 'every alert that was due was raised once, and no other',
      ok: body.total === due.length && alerts.size === due.length && fleet.misjudged === 0,
      detail: `${due.length} due, ${body.total} raised, ${fleet.misjudged} misjudged`,
    },
    {
      name: 'every webhook came and is genuine',
      ok: received.unverified === 0 && due.every((n) => sessions.has(n)),
      detail:
        `${sessions.size} of ${due.length}, ${received.unverified} not genuine, ` +
        `${received.alerts.length - alerts.size} twice`,
    },
    {
      name: 'every probe was seen',
      ok: probes.failed === 0,
      detail: `${probes.seen.length} in ${probes.looks} looks, ${probes.failed} not`,
    },
  ]
}

/** Waits until everything has arrived: it checks what is stored, not how soon. */
async function checkStored(
  { clickhouse, tenant }: FreshnessRig,
  accepted: number[],
): Promise<Check> {
  const expected = { rows: accepted.length, sum: accepted.reduce((sum, n) => sum + n, 0) }
  const limitMs = nowMs() + settleMaxMs
  let stored = { rows: 0, events: 0, sum: 0 }
  do {
    const result = await clickhouse.query({
      query: `select count() as rows, uniqExact(event_id) as events,
          sum(toUInt64(splitByChar('-', session_id)[-1])) as sum
        from telemetry final
        where tenant_id = {tenant:String} and startsWith(session_id, 'session-')`,
      query_params: { tenant: tenant.tenant_id },
      format: 'JSONEachRow',
    })
    stored = (await result.json<typeof stored>())[0]!
  } while (stored.rows < expected.rows && nowMs() < limitMs && (await pause(500, true)))
  return {
    name: 'what was answered 200 is in ClickHouse, once',
    ok:
      stored.rows === expected.rows &&
      stored.events === expected.rows &&
      stored.sum === expected.sum,
    detail: `${expected.rows} answered, ${stored.rows} rows of ${stored.events} events`,
  }
}

async function readVersions({ test, clickhouse }: FreshnessRig): Promise<Record<string, string>> {
  const log = createLog('bench', 'silent')
  const { stack }: { stack: StackFacts } = test
  const nats = await connectNats(stack.nats, 'bench', log)
  const postgres = createPostgres(stack.postgres, { role: 'bench', log })
  try {
    return {
      nats: nats.connection.info?.version ?? 'unknown',
      clickhouse: await readClickhouseVersion(clickhouse),
      postgres: await readPostgresVersion(postgres),
    }
  } finally {
    await Promise.all([nats.close(), postgres.close()])
  }
}
