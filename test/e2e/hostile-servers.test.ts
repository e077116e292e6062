/**
 * Every operation of the API and of the console, with the migrations and the jobs behind them, on a
 * PostgreSQL and a ClickHouse whose defaults are as far from ours as they can be, with PgBouncer in
 * transaction mode between. A statement on a connection without our settings fails there.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type OpenapiRig, startOpenapiRig } from '../faults/openapi/rig.ts'
import { drillOpenapi, type OpenapiFindings } from '../faults/openapi/run-openapi.ts'
import { type ApiDevice, admin, read } from '../support/http/tenant-client.ts'
import { seed } from '../support/process/seed.ts'
import { until } from '../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../support/servers/clickhouse-server.ts'
import {
  asStranger,
  hostileBehindPooler,
  hostileClickhouse,
  toDatabaseSettings,
  toEngineUser,
} from '../support/servers/hostile-settings.ts'
import { startPgbouncer, type TestPgbouncer } from '../support/servers/pgbouncer-server.ts'
import { startPostgres, type TestPostgres } from '../support/servers/postgres-server.ts'

let postgres: TestPostgres
let bouncer: TestPgbouncer
let clickhouse: TestClickhouse
let rig: OpenapiRig
let findings: OpenapiFindings

beforeAll(async () => {
  ;[postgres, clickhouse] = await Promise.all([
    startPostgres(),
    startClickhouse({ users: [toEngineUser(hostileClickhouse)] }),
  ])
  const url = await postgres.createDatabase()
  await makeHostile(url)
  bouncer = await startPgbouncer('transaction', { url: postgres.url, poolSize: 70 })
  rig = await startOpenapiRig({
    env: { POSTGRES_URL: bouncer.through(url), CLICKHOUSE_URL: asStranger(clickhouse.url) },
    hasAnalysts: false,
  })
  findings = await drillOpenapi(rig, { calls: 100, callsLeast: 2, seed })
})
afterAll(async () => {
  await rig?.close()
  await bouncer?.stop()
  await Promise.all([postgres?.stop(), clickhouse?.stop()])
})

async function makeHostile(url: string): Promise<void> {
  const own = createPostgres(postgres.url, { role: 'test', log: createLog('test', 'silent') })
  for (const sql of toDatabaseSettings(new URL(url).pathname.slice(1), hostileBehindPooler)) {
    await own.query(sql)
  }
  await own.close()
}

it('every operation answers as its document says, and none with a 5xx', () => {
  expect([...findings.faults.values()].map((one) => `${one.operation} ${one.why}`)).toEqual([])
  const failed = findings.operations.flatMap(({ name, statuses }) =>
    Object.keys(statuses)
      .filter((status) => Number(status) >= 500)
      .map((status) => `${name}: ${status}`),
  )
  expect(failed).toEqual([])
})

it('the history of a device is whole', async () => {
  const key = rig.reader.public_api_key
  const { body } = await read<ApiDevice>(rig.running.stack, key, '/v1/di/devices/device-1')
  expect([body.sessions_total, body.sessions.length, body.users_seen_on]).toEqual([
    ...[8, 8, ['user-0', 'user-1', 'user-2']],
  ])
  expect(Date.now() - Date.parse(body.first_seen_at)).toBeLessThan(10 * 60_000)
})

it('the jobs have copied, counted and compared what was accepted, and it agrees', async () => {
  const since = new Date().toISOString()
  const view = await until('reconciliation', async () => {
    const path = '/tenants/reader/reconciliation'
    const found = await admin<ReconciliationView>(rig.running.stack, 'GET', path)
    return (found.as_of ?? '') > since && found.data.length > 0 ? found : null
  })
  expect(view).toMatchObject({ agrees: true })
})

it('no server has refused a statement of any process', () => {
  const logs = join(rig.running.dataDir, 'logs')
  const refused = readdirSync(logs)
    .filter((name) => !/^(nats|clickhouse|postgres)/.test(name))
    .flatMap((name) => readFileSync(join(logs, name), 'utf8').split('\n'))
    .filter((line) => /"level":(50|60)|ClickHouse answered|"code":"[0-9A-Z]{5}"/.test(line))
  expect(refused).toEqual([])
})
