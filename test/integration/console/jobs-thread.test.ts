// The jobs of a console run on a second thread: a blocked thread does not block the other one, and
// a dying thread ends the process with its reason.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInspector } from '../../support/process/inspector.ts'
import { sumOf } from '../../support/process/read-metric.ts'
import { createServiceProcess, type ServiceProcess } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const token = randomBytes(32).toString('base64url')
const block = (ms: number) => `{ const end = Date.now() + ${ms}; while (Date.now() < end); }`
let servers: { postgres: TestPostgres; nats: TestNats; clickhouse: TestClickhouse }
let admin: ServiceProcess

beforeAll(async () => {
  const [postgres, nats, clickhouse] = await Promise.all([
    startPostgres(),
    startNats(),
    startClickhouse({ isMigrated: true }),
  ])
  servers = { postgres, nats, clickhouse }
  const postgresUrl = await postgres.createMigratedDatabase()
  const env = {
    MASTER_KEY: randomBytes(32).toString('base64'),
    NATS_URL: nats.url,
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: clickhouse.url,
    ADMIN_TOKEN: token,
    LOG_LEVEL: 'warn',
  }
  admin = await createServiceProcess('console', env, ['--inspect=127.0.0.1:0'])
  await admin.start()
})
afterAll(async () => {
  await admin?.kill()
  await servers?.clickhouse.stop()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})

async function countRounds() {
  const text = await admin.readMetrics()
  const replication = 'di_replication_rounds_total'
  return {
    directory: sumOf(text, 'di_directory_reconciler_rounds_total', { outcome: 'done' }),
    replication: sumOf(text, replication) - sumOf(text, replication, { outcome: 'failed' }),
  }
}

const readReadiness = async () => {
  const answer = await fetch(`${admin.internalUrl}/readyz`)
  return { status: answer.status, body: await answer.json() }
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

const listTenants = async () => {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${admin.url}/admin/v1/tenants`, { headers })
  expect(answer.status).toBe(200)
  await answer.text()
}

it('the directory and replication continue while a page blocks the main thread', async () => {
  const inspector = await openInspector(admin.output)
  await until('both jobs have run', async () => {
    const { directory, replication } = await countRounds()
    return directory > 0 && replication > 0
  })
  const before = await countRounds()
  const blocked = inspector.onMain(block(3_500))
  expect(await timeOf(listTenants)).toBeGreaterThan(2_500)
  await blocked
  const after = await countRounds()
  // One per second and one in two seconds; a blocked job would have run at most once.
  expect(after.directory - before.directory).toBeGreaterThanOrEqual(2)
  expect(after.replication - before.replication).toBeGreaterThanOrEqual(1)
  inspector.close()
})

it('pages are answered while a job blocks its thread, and readiness reports it', async () => {
  const inspector = await openInspector(admin.output)
  const blocked = inspector.onWorker(block(8_000))
  let isBlocked = true
  void blocked.then(() => {
    isBlocked = false
  })
  await listTenants()
  expect(isBlocked).toBe(true)
  // A slow machine may warn of others too.
  const warnings = { jobs: 'do not answer' }
  expect(await readReadiness()).toMatchObject({ status: 200, body: { status: 'ready', warnings } })
  const metrics = await admin.readMetrics()
  expect(sumOf(metrics, 'di_jobs_answer_seconds')).toBe(1)
  expect(sumOf(metrics, 'process_start_time_seconds')).toBeGreaterThan(0)
  await blocked
  await until('the jobs answer again', async () => {
    const { body } = await readReadiness()
    return (body as { warnings?: { jobs?: string } }).warnings?.jobs === undefined
  })
  expect((await countRounds()).directory).toBeGreaterThan(0)
  inspector.close()
})

it('each metric is shown once, with the connections of both threads', async () => {
  const text = await admin.readMetrics()
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toEqual(
    expect.arrayContaining(['di_replication_lag_seconds', 'di_console_sign_ins_total']),
  )
  expect(sumOf(text, 'di_postgres_connections')).toBeGreaterThan(1)
  const waiting = [...text.matchAll(/^di_postgres_waiting\{.*pool="([^"]+)"/gm)]
  expect(waiting.map(([, pool]) => pool).sort()).toEqual([
    ...['console', 'console jobs', 'console jobs leases', 'console leases'],
  ])
})

it('a stop ends both threads in order', async () => {
  const { code } = await admin.terminate()
  expect({ code, output: admin.output() }).toMatchObject({ code: 0 })
  expect(admin.output()).not.toContain('did not end in time')
  await admin.start()
})

it('a dying thread ends the process with the reason', async () => {
  const inspector = await openInspector(admin.output)
  await inspector.onWorker("setTimeout(() => { throw new Error('a job broke') }, 100)")
  // A process waits at its end for an attached inspector.
  inspector.close()
  await until('the process has ended', () => !admin.isAlive())
  expect(admin.output()).toMatch(/"msg":"stopping after an uncaught error"/)
  expect(admin.output()).toContain('a job broke')
})
