/**
 * `npm run bench -- fairness [--rounds 3] [--seconds 20] [--backlog 10000] [--kinds hang,fail]`:
 * the time from the commit of an alert to the receiver's first byte for twenty healthy tenants,
 * alone and beside a tenant with a backlog and a failing endpoint, in interleaved rounds of the
 * same run. Each failing tenant is new and starts with its round, so the measurement includes the
 * time until delivery detects the failure. Exits with 1 when the p99 is above 1.5 times that of
 * alone.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { publishDeliveryHints } from '#shared/io/deliveries/publish-hints.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { makeAlertCandidates } from '../../support/deliveries/delivery-alerts.ts'
import {
  createDeliveryFixtures,
  type DeliveryFixtures,
  testMasterKey,
} from '../../support/deliveries/delivery-fixtures.ts'
import { startDelivery } from '../../support/deliveries/delivery-process.ts'
import { percentile } from '../../support/process/percentile.ts'
import { until } from '../../support/process/until.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { publishReport } from '../report.ts'
import { toSpread } from '../spread.ts'
import type { Arrival, ReceiverAnswer } from './fairness-receiver.ts'

const tenants = 20
const alertsPerSecond = 20
const ratioMax = 1.5

/** Time of the machine's monotonic clock, which all its processes share. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6
const print = (line: string) => process.stdout.write(`${line}\n`)
const log = createLog('bench', 'silent')

type Receiver = {
  port: number
  /** What arrived since the last read. */
  read: () => Promise<{ arrivals: Arrival[]; requests: number }>
  /** The same, once every connection is closed. */
  drop: () => Promise<{ arrivals: Arrival[]; requests: number }>
}

type Bench = {
  postgres: Postgres
  nats: Nats
  fixtures: DeliveryFixtures
  healthy: { receiver: Receiver; tenantIds: string[] }
  bad: Receiver
  /** No process listens on this port. */
  closedPort: number
  alertsRaised: number
  /** The version of nats-server. */
  version: string
}

type Result = {
  alone: number[]
  beside: number[]
  /**
   * Attempts at the failing endpoint in its rounds: requests that it received, or recorded
   * attempts.
   */
  attempts: number
  /** Rounds that ended with an open circuit. */
  opened: number
}
const newResult = (): Result => ({ alone: [], beside: [], attempts: 0, opened: 0 })

type Closing = (() => Promise<unknown> | unknown)[]

const kinds: Record<string, { name: string; url: (bench: Bench) => string }> = {
  hang: { name: 'never answers', url: ({ bad }) => `http://127.0.0.1:${bad.port}/hang` },
  refuse: {
    name: 'refuses connections',
    url: ({ closedPort }) => `http://127.0.0.1:${closedPort}/`,
  },
  fail: { name: 'answers 500 at once', url: ({ bad }) => `http://127.0.0.1:${bad.port}/500` },
  slow: { name: 'answers after 3 s', url: ({ bad }) => `http://127.0.0.1:${bad.port}/slow` },
}

/** Runs it and prints a table. */
export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '20' },
      backlog: { type: 'string', default: '10000' },
      kinds: { type: 'string', default: Object.keys(kinds).join() },
    },
  })
  const [rounds, seconds, backlog] = [values.rounds, values.seconds, values.backlog].map(Number)
  const chosen = values.kinds.split(',')
  const closing: Closing = []
  try {
    const bench = await start(closing)
    print(
      `${tenants} healthy tenants, ${alertsPerSecond} alerts/s in all; a bad one with a backlog`,
    )
    print(`  of ${backlog}; ${rounds} rounds of ${seconds} s, each alone and then with it`)
    await measure(bench, 5)
    const results = new Map(chosen.map((kind) => [kind, newResult()]))
    for (let round = 0; round < rounds!; round++) {
      for (const [kind, result] of results) {
        result.alone.push(...(await measure(bench, seconds!)).latenciesMs)
        await measureBeside(bench, { kind, seconds: seconds!, backlog: backlog! }, result)
        print(`  round ${round + 1}, ${kind}: ${toLine(result)}`)
      }
    }
    const command =
      `npm run bench -- fairness --rounds ${rounds} --seconds ${seconds} ` +
      `--backlog ${backlog} --kinds ${values.kinds}`
    report(results, command, bench.version)
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function start(closing: Closing): Promise<Bench> {
  const [server, database] = await Promise.all([startNats(), startPostgres()])
  closing.push(server.stop, database.stop)
  const postgresUrl = await database.createDatabase()
  const nats = await connectNats(server.url, 'bench', log)
  closing.push(nats.close)
  await Promise.all([migratePostgres(postgresUrl), ensureStreams(nats)])
  const postgres = createPostgres(postgresUrl, { role: 'bench', log, statementTimeoutMs: 60_000 })
  closing.push(postgres.close)
  const fixtures = createDeliveryFixtures(postgres)
  const [receiver, bad] = [await launchReceiver(closing), await launchReceiver(closing)]
  const tenantIds: string[] = []
  for (let n = 0; n < tenants; n++) {
    const url = `http://127.0.0.1:${receiver.port}/ok`
    tenantIds.push((await fixtures.addTenant({ url })).tenantId)
  }
  const listen = `127.0.0.1:${await choosePort({})}`
  const delivery = startDelivery({
    POSTGRES_URL: postgresUrl,
    NATS_URL: server.urlOf('delivery'),
    MASTER_KEY: testMasterKey,
    DELIVERY_LISTEN: listen,
    ALLOW_PRIVATE_WEBHOOKS: '1',
    LOG_LEVEL: 'error',
  })
  closing.push(delivery.kill)
  await until('delivery follows hints', async () => {
    const text = await (await fetch(`http://${listen}/metrics`)).text()
    return /^di_delivery_hints_connected.* 1$/m.test(text)
  })
  const healthy = { receiver, tenantIds }
  const closedPort = await choosePort({})
  const { version } = server
  return { postgres, nats, fixtures, healthy, bad, closedPort, alertsRaised: 0, version }
}

async function launchReceiver(closing: Closing): Promise<Receiver> {
  const program = fileURLToPath(new URL('./fairness-receiver.ts', import.meta.url))
  const child = fork(program, { execArgv: [] })
  closing.push(() => child.kill('SIGKILL'))
  const answer = async () => (await once(child, 'message'))[0] as ReceiverAnswer
  const request = async (what: 'read' | 'drop') => {
    child.send(what)
    const reply = await answer()
    return 'port' in reply ? { arrivals: [], requests: 0 } : reply
  }
  const first = await answer()
  return {
    port: 'port' in first ? first.port : 0,
    read: () => request('read'),
    drop: () => request('drop'),
  }
}

/** Raises alerts of the healthy tenants in rotation, and measures the time of each. */
async function measure(bench: Bench, seconds: number): Promise<{ latenciesMs: number[] }> {
  const { postgres, nats, healthy } = bench
  const count = seconds * alertsPerSecond
  const candidates = makeAlertCandidates(healthy.tenantIds, count, ++bench.alertsRaised)
  const committed = new Map<string, number>()
  const raise = async (candidate: (typeof candidates)[number]) => {
    const { raised } = await raiseAlerts(postgres, [candidate], Date.now)
    const atMs = nowMs()
    for (const { deliveryId } of raised) committed.set(deliveryId, atMs)
    await publishDeliveryHints(nats, raised, () => undefined)
  }
  await healthy.receiver.read()
  const begunMs = nowMs()
  const raising: Promise<void>[] = []
  for (const [at, candidate] of candidates.entries()) {
    await pause(Math.max(0, begunMs + (at * 1_000) / alertsPerSecond - nowMs()))
    raising.push(raise(candidate))
  }
  await Promise.all(raising)
  const latenciesMs: number[] = []
  await until('every alert of the healthy tenants has arrived', async () => {
    const { arrivals } = await healthy.receiver.read()
    for (const [deliveryId, atMs] of arrivals) {
      const committedMs = committed.get(deliveryId)
      if (committedMs !== undefined) latenciesMs.push(Math.max(0, atMs - committedMs))
    }
    return latenciesMs.length >= count
  })
  return { latenciesMs }
}

type Beside = { kind: string; seconds: number; backlog: number }

/** The same beside a new tenant whose whole backlog becomes due at the start of the round. */
async function measureBeside(
  bench: Bench,
  { kind, seconds, backlog }: Beside,
  result: Result,
): Promise<void> {
  const { postgres, fixtures, bad } = bench
  const { tenantId } = await fixtures.addTenant()
  const url = kinds[kind]!.url(bench)
  await fixtures.setWebhook(tenantId, url, 'paused')
  const candidates = makeAlertCandidates([tenantId], backlog, 0)
  for (let at = 0; at < candidates.length; at += 500) {
    await raiseAlerts(postgres, candidates.slice(at, at + 500), Date.now)
  }
  await settle(bench)
  await bad.read()
  await fixtures.setWebhook(tenantId, url, 'on')
  result.beside.push(...(await measure(bench, seconds)).latenciesMs)
  const { rows } = await postgres.query<{ attempts: number; opened: number }>(
    `select (select count(*) from delivery_attempts join deliveries using (delivery_id)
             where tenant_id = $1) as attempts,
       (select count(*) from webhooks where tenant_id = $1
         and circuit_open_until is not null) as opened`,
    [tenantId],
  )
  await fixtures.setWebhook(tenantId, url, 'paused')
  const { requests } = await bad.drop()
  result.attempts += Math.max(requests, rows[0]!.attempts)
  result.opened += rows[0]!.opened
  await until('nothing of the bad tenant is in flight', async () => {
    const claimed = await postgres.query(
      'select from deliveries where tenant_id = $1 and claimed_by is not null limit 1',
      [tenantId],
    )
    return claimed.rowCount === 0
  })
  await postgres.query('delete from tenants where tenant_id = $1', [tenantId])
  await settle(bench)
}

/** Vacuums the tables after the bench's own writes, before the measurement. */
async function settle({ postgres }: Bench): Promise<void> {
  for (const table of ['alerts', 'deliveries', 'delivery_attempts']) {
    await postgres.query(`vacuum (analyze) ${table}`)
  }
  await pause(1_000)
}

const toTimes = (values: number[]) =>
  [0.5, 0.99].map((rank) => percentile(values, rank).toFixed(1).padStart(7)).join(' ')

const toLine = (result: Result) =>
  `alone ${toTimes(result.alone)}, beside it ${toTimes(result.beside)} ms`

function report(results: Map<string, Result>, command: string, version: string): void {
  publishReport({
    part: 'fairness',
    command,
    versions: { nats: version },
    durability: 'postgres fsync off',
    figures: [...results].map(([kind, { alone, beside, attempts, opened }]) => {
      const [value, baseline] = [percentile(beside, 0.99), percentile(alone, 0.99)]
      return {
        name: `p99 beside one that ${kinds[kind]!.name} (${attempts} attempts, ${opened} open circuits)`,
        unit: 'ms',
        value: toSpread([value]),
        baseline: { name: 'alone', value: toSpread([baseline]) },
        ratio: toSpread([value / baseline]),
        bound: { of: 'ratio', atMost: ratioMax },
      }
    }),
    checks: [],
  })
}
