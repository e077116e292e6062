/**
 * `npm run bench -- delivery [--deliveries N] [--rounds N]`: deliveries per second of one delivery
 * process, beside a bare undici loop that posts the same bytes to the same receiver, in interleaved
 * rounds; then the time from an alert's commit to the receiver's first byte, at half of that rate.
 * A round is valid only if every delivery arrived once and is `delivered`.
 */
import { parseArgs } from 'node:util'
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { signDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { publishDeliveryHints } from '#shared/io/deliveries/publish-hints.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import {
  createDeliveryFixtures,
  testMasterKey,
} from '../../support/deliveries/delivery-fixtures.ts'
import { percentile } from '../../support/process/percentile.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import {
  type BenchChild,
  forkChild,
  type MeasuredService,
  readCpuSeconds,
  startMeasured,
} from '../measured-process.ts'
import { publishReport, readPostgresVersion } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'

const log = createLog('bench', 'silent')
const tenantsMax = 16
/** As many connections as the delivery process may have requests in flight. */
const connections = 64

type Rig = {
  postgres: Postgres
  nats: Nats
  receiver: BenchChild
  baseline: BenchChild
  origin: string
  tenantIds: string[]
  postgresPid: number
  delivery: MeasuredService
}

const nowMs = () => performance.timeOrigin + performance.now()
const median = (values: readonly number[]) => percentile(values, 0.5)

let sessions = 0
const reasons = [
  { code: 'ROOTED', weight: 40, evidence: { signals: ['root.su_binary', 'root.magisk_detected'] } },
  { code: 'EMULATOR', weight: 35, evidence: { signals: ['emulator.is_emulator'] } },
]
const toCandidate = (tenantId: string): AlertCandidate =>
  makeAlertCandidate({
    tenantId,
    sessionId: `session-${++sessions}`,
    deviceId: `device-${sessions % 5_000}`,
    userId: `user-${sessions % 3_000}`,
    action: 'BLOCK',
    riskScore: 75,
    raspScore: 75,
    reasons,
  })

/** Raises alerts in the scorer's way, in rotation over the tenants. */
async function raise(rig: Rig, count: number): Promise<{ tenantId: string; deliveryId: string }[]> {
  const candidates = Array.from({ length: count }, (_, n) =>
    toCandidate(rig.tenantIds[n % rig.tenantIds.length]!),
  )
  return (await raiseAlerts(rig.postgres, candidates, Date.now)).raised
}

async function setState(rig: Rig, state: 'on' | 'paused'): Promise<void> {
  await rig.postgres.query('update webhooks set state = $1', [state])
}

type Arrivals = { arrivals: [string, number][] }

async function countArrived(rig: Rig, count: number): Promise<void> {
  const limitMs = nowMs() + 120_000
  for (;;) {
    const answer = await rig.receiver.request<{ count: number }>('count')
    if (answer.count >= count) return
    if (nowMs() > limitMs) throw new Error(`only ${answer.count} of ${count} deliveries arrived`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const rateOf = ({ arrivals }: Arrivals): number => {
  const times = arrivals.map(([, at]) => at).sort((a, b) => a - b)
  return ((times.length - 1) / (times.at(-1)! - times[0]!)) * 1_000
}

/** @returns posts per second, by the receiver's clock, and µs of CPU for each */
async function runBaseline(rig: Rig, count: number): Promise<{ rate: number; cpuUs: number }> {
  const { rows } = await rig.postgres.query<{ delivery_id: string; body: Buffer }>(
    'select delivery_id, body from deliveries limit 1000',
  )
  const timestampSeconds = Math.floor(Date.now() / 1_000)
  await rig.receiver.request('reset')
  const answer = await rig.baseline.request<{ cpuUs: number }>({
    origin: rig.origin,
    path: '/hook',
    requests: rows.map(({ delivery_id: deliveryId, body }) => ({
      body: body.toString(),
      headers: signDelivery(body, 'whsec_AAAA', { deliveryId, attempt: 1, timestampSeconds }),
    })),
    count,
    connections,
  })
  return {
    rate: rateOf(await rig.receiver.request<Arrivals>('report')),
    cpuUs: answer.cpuUs / count,
  }
}

/** The same for the delivery process, with the CPU of Postgres. */
async function runEngine(rig: Rig, count: number) {
  await setState(rig, 'paused')
  for (let left = count; left > 0; left -= 1_000) await raise(rig, Math.min(left, 1_000))
  await rig.postgres.query('checkpoint')
  await rig.receiver.request('reset')
  const before = [readCpuSeconds(rig.delivery.pid), readCpuSeconds(rig.postgresPid, true)]
  await setState(rig, 'on')
  await countArrived(rig, count)
  const report = await rig.receiver.request<Arrivals>('report')
  for (;;) {
    const { rows } = await rig.postgres.query<{ n: number }>(
      "select count(*) as n from deliveries where state <> 'delivered'",
    )
    if (Number(rows[0]!.n) === 0) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const after = [readCpuSeconds(rig.delivery.pid), readCpuSeconds(rig.postgresPid, true)]
  requireOnce(report, count)
  return {
    rate: rateOf(report),
    cpuUs: ((after[0]! - before[0]!) * 1e6) / count,
    postgresUs: ((after[1]! - before[1]!) * 1e6) / count,
  }
}

function requireOnce({ arrivals }: Arrivals, count: number): void {
  const ids = new Set(arrivals.map(([id]) => id))
  if (arrivals.length !== count || ids.size !== count) {
    throw new Error(`void: ${arrivals.length} requests of ${ids.size} deliveries for ${count}`)
  }
}

/**
 * From the commit to the first byte, at a fixed rate, with a batch every 20 ms as a scorer makes
 * them.
 */
async function runOpenLoop(rig: Rig, rate: number, seconds: number): Promise<number[]> {
  await rig.receiver.request('reset')
  const committed = new Map<string, number>()
  const everyMs = 20
  const startMs = nowMs()
  let due = 0
  let raised = 0
  const hints: Promise<void>[] = []
  while (nowMs() - startMs < seconds * 1_000) {
    due = Math.floor(((nowMs() - startMs) / 1_000) * rate)
    if (due > raised) {
      const batch = await raise(rig, due - raised)
      const atMs = nowMs()
      raised = due
      for (const { deliveryId } of batch) committed.set(deliveryId, atMs)
      hints.push(publishDeliveryHints(rig.nats, batch, () => undefined))
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
  await Promise.all(hints)
  await countArrived(rig, raised)
  const report = await rig.receiver.request<Arrivals>('report')
  requireOnce(report, raised)
  return report.arrivals.map(([id, at]) => at - committed.get(id)!)
}

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      deliveries: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '5' },
    },
  })
  const count = Number(values.deliveries)
  const [server, natsServer] = await Promise.all([
    startPostgres({ settings: { fsync: 'on' } }),
    startNats(),
  ])
  const url = await server.createDatabase()
  await migratePostgres(url)
  const postgres = createPostgres(url, { role: 'bench', log, statementTimeoutMs: 0 })
  const nats = await connectNats(natsServer.url, 'bench', log)
  await ensureStreams(nats)
  const { worker: receiver, first } = await forkChild('./delivery/delivery-receiver.ts')
  const { worker: baseline } = await forkChild('./delivery/delivery-baseline.ts')
  const origin = `http://127.0.0.1:${(first as { port: number }).port}`
  const fixtures = createDeliveryFixtures(postgres)
  const tenantIds: string[] = []
  for (let n = 0; n < tenantsMax; n++) {
    tenantIds.push((await fixtures.addTenant({ url: `${origin}/hook` })).tenantId)
  }
  const delivery = await startMeasured('delivery', {
    POSTGRES_URL: url,
    NATS_URL: natsServer.urlOf('delivery'),
    MASTER_KEY: testMasterKey,
    ALLOW_PRIVATE_WEBHOOKS: '1',
  })
  const postgresPid = server.pid
  const rig: Rig = { postgres, nats, receiver, baseline, origin, tenantIds, postgresPid, delivery }
  try {
    await report(rig, count, Number(values.rounds), natsServer.version)
  } finally {
    await delivery.stop()
    receiver.stop()
    baseline.stop()
    await nats.close()
    await postgres.close()
    await Promise.all([server.stop(), natsServer.stop()])
  }
}

async function report(rig: Rig, count: number, rounds: number, natsVersion: string): Promise<void> {
  await runEngine(rig, Math.min(count, 4_000))
  await runBaseline(rig, Math.min(count, 4_000))
  const baselines: { rate: number; cpuUs: number }[] = []
  const owns: { rate: number; cpuUs: number; postgresUs: number }[] = []
  for (let round = 0; round < rounds; round++) {
    baselines.push(await runBaseline(rig, count))
    owns.push(await runEngine(rig, count))
  }
  const rates = owns.map(({ rate }) => rate)
  const half = median(rates) / 2
  const waits = await runOpenLoop(rig, half, 15)
  const compare = (key: 'rate' | 'cpuUs') => {
    const [own, baseline] = [owns.map((one) => one[key]), baselines.map((one) => one[key])]
    const value = toSpread(baseline)
    return {
      value: toSpread(own),
      baseline: { name: 'bare undici loop', value },
      ratio: toRatios(own, baseline),
    }
  }
  const wait = (rank: number) => toSpread([percentile(waits, rank)])
  const at = `committed to first byte at ${half.toFixed(0)}/s`
  publishReport({
    part: 'delivery',
    command: `npm run bench -- delivery --deliveries ${count} --rounds ${rounds}`,
    versions: { nats: natsVersion, postgres: await readPostgresVersion(rig.postgres) },
    durability: 'postgres fsync on',
    figures: [
      {
        name: 'deliveries of one process',
        unit: '/s',
        ...compare('rate'),
        bound: { of: 'ratio', atLeast: 0.5 },
      },
      { name: 'CPU of a delivery', unit: 'µs', ...compare('cpuUs') },
      {
        name: "Postgres' CPU for it",
        unit: 'µs',
        value: toSpread(owns.map(({ postgresUs }) => postgresUs)),
      },
      { name: `${at}, p50`, unit: 'ms', value: wait(0.5) },
      {
        name: `${at}, p99`,
        unit: 'ms',
        value: wait(0.99),
        bound: { of: 'value', atMost: 100 },
      },
    ],
    checks: [
      {
        name: 'every delivery arrived once and is delivered',
        ok: true,
        detail: `${rounds * count + waits.length} deliveries, or the run had ended`,
      },
    ],
  })
}
