/**
 * What every page of a tenant asks of the admin API, with alerts in 3,000 cases beside the
 * events in ClickHouse: sent over HTTP to a console in this process. The floor is a call that one
 * look-up by key answers.
 */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { dayMs, hourMs, toIso } from '#shared/core/base/instants.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import { createPrevalenceSpikeStore } from '#shared/io/analytics/prevalence-spike-store.ts'
import { createRulePerformanceStore } from '#shared/io/analytics/rule-performance-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { toWalkDeps } from '../../support/analytics/walked-fleet.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'
import { readCpuSeconds } from '../measured-process.ts'
import type { Figure } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { tenantId, toDeviceId, userId } from './page-rows.ts'

const cases = 3_000
/** In one transaction, as a scorer raises them. */
const alertsPerBatch = 500
const pageMaxMs = 500

type Measuring = {
  clickhouse: Clickhouse
  clickhousePid: number
  nowMs: number
  rounds: number
  alerts: number
}

const adminToken = randomBytes(32).toString('base64url')

/** Sends each call in turn, in rounds beside the floor; the first of each is not timed. */
export async function measureCalls(measuring: Measuring): Promise<Figure[]> {
  const server = await startPostgres()
  const postgres = createPostgres(await server.createMigratedDatabase(), {
    role: 'bench',
    log: testLog,
    statementTimeoutMs: 0,
  })
  try {
    await fillAlerts(postgres, measuring)
    const app = await openConsole(postgres, measuring)
    try {
      await app.listen({ host: '127.0.0.1', port: 0 })
      const { port } = app.server.address() as AddressInfo
      const send = async (path: string) => {
        const answer = await fetch(`http://127.0.0.1:${port}/admin/v1${path}`, {
          headers: { authorization: `Bearer ${adminToken}` },
        })
        const text = await answer.text()
        if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`)
      }
      const pids = [process.pid, measuring.clickhousePid, server.pid]
      return await measureAll(send, { ...measuring, pids })
    } finally {
      await app.close()
    }
  } finally {
    await postgres.close()
    await server.stop()
  }
}

type Sending = { nowMs: number; rounds: number; pids: readonly number[] }

async function measureAll(
  send: (path: string) => Promise<void>,
  { nowMs, rounds, pids }: Sending,
): Promise<Figure[]> {
  const readCpu = () =>
    pids.reduce((sum, pid) => sum + readCpuSeconds(pid, pid !== process.pid), 0) * 1_000
  const measure = async (path: string) => {
    const [startMs, cpu] = [performance.now(), readCpu()]
    await send(path)
    return { ms: performance.now() - startMs, cpu: readCpu() - cpu }
  }
  const figures: Figure[] = []
  const floor = `/tenants/${tenantId}`
  for (const [name, path] of toCalls(nowMs)) {
    await send(path)
    await send(floor)
    const [own, floors]: { ms: number; cpu: number }[][] = [[], []]
    for (let round = 0; round < rounds; round++) {
      own!.push(await measure(path))
      floors!.push(await measure(floor))
    }
    const of = (part: 'ms' | 'cpu') => own!.map((one) => one[part])
    const floorsMs = floors!.map(({ ms }) => ms)
    figures.push({
      name: `${name}: its call`,
      unit: 'ms',
      value: toSpread(of('ms')),
      baseline: { name: 'the tenant alone', value: toSpread(floorsMs) },
      ratio: toRatios(of('ms'), floorsMs),
      bound: { of: 'value', atMost: pageMaxMs },
    })
    figures.push({ name: `${name}: CPU of all servers`, unit: 'ms', value: toSpread(of('cpu')) })
  }
  return figures
}

function toCalls(nowMs: number): [name: string, path: string][] {
  const own = `/tenants/${tenantId}`
  const since = (days: number) => {
    const fromMs = Math.floor((nowMs - days * dayMs) / hourMs) * hourMs
    return `from=${toIso(fromMs)}&to=${toIso(nowMs)}`
  }
  const device = `${own}/devices/${toDeviceId(7)}`
  const user = `${own}/users/${userId}`
  return [
    ...[1, 7, 30].map((days): [string, string] => [
      `overview of ${days} days`,
      `${own}/overview?${since(days)}&parts=telemetry`,
    ]),
    ...[1, 7, 30].map((days): [string, string] => [
      `fleet of ${days} days`,
      `${own}/fleet?${since(days)}`,
    ]),
    ['alerts', `${own}/alerts?limit=100`],
    ['open alerts with a flag', `${own}/alerts?limit=100&disposition=OPEN&flag=ROOTED`],
    ['cases', `${own}/cases?limit=100&state=OPEN`],
    ['counts of cases', `${own}/cases/counts`],
    ['events', `${own}/events?${since(1)}&limit=100`],
    ['events with a signal', `${own}/events?${since(7)}&limit=100&signal=root.su_binary`],
    ['device', device],
    ['alerts of a device', `${own}/alerts?limit=20&device_id=${toDeviceId(7)}`],
    ['user', user],
    ['lists', `${own}/lists`],
    ['rule performance', `${own}/rule-performance?since=${toIso(nowMs - 30 * dayMs)}`],
    ['prevalence spikes', `${own}/prevalence-spikes`],
    ['policy', `${own}/policy`],
    ['policy versions', `${own}/policy/versions`],
    ['audit', `${own}/audit?limit=100`],
  ]
}

/** Over 30 days up to now, each device with the same number of them; one user has 200 devices. */
async function fillAlerts(postgres: Postgres, { alerts, nowMs }: Measuring): Promise<void> {
  await insertBareTenants(postgres, [tenantId])
  for (let first = 0; first < alerts; first += alertsPerBatch) {
    const candidates = Array.from({ length: alertsPerBatch }, (_, place) => {
      const device = (first + place) % cases
      return makeAlertCandidate({
        tenantId,
        deviceId: toDeviceId(device),
        sessionId: `bench-${first + place}`,
        userId: device < 200 ? userId : null,
        action: device % 3 === 0 ? 'BLOCK' : 'REVIEW',
      })
    })
    const atMs = nowMs - Math.floor(((alerts - first) * 30 * dayMs) / alerts)
    await raiseAlerts(postgres, candidates, () => atMs)
  }
  await postgres.query('vacuum (analyze)')
}

/** A console with the stores that these calls need. */
function openConsole(postgres: Postgres, { clickhouse }: Measuring) {
  const deps = {
    ...toWalkDeps({ deps: { analysts: { clickhouse } }, postgres }),
    postgres,
    publicUrl: () => 'http://127.0.0.1',
    adminToken,
    log: testLog,
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    fleet: createFleetStore(clickhouse),
    readRulePerformance: createRulePerformanceStore(clickhouse).readRulePerformance,
    prevalenceSpikes: createPrevalenceSpikeStore(clickhouse),
  }
  // The other routes are not called.
  return createConsoleApp(deps as unknown as ConsoleDeps, {
    log: testLog,
    metrics: createMetrics('console'),
  })
}
