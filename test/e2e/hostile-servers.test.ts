/**
 * Calls of every kind of query, with the migrations and the jobs behind them, on a PostgreSQL and a
 * ClickHouse whose defaults are as far from ours as they can be, with PgBouncer in transaction mode
 * between. A statement on a connection without our settings fails there, or finds nothing.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type Receiver, startReceiver } from '../support/deliveries/receiver.ts'
import {
  type ApiDevice,
  admin,
  createTenant,
  ingest,
  read,
  readAlerts,
  type Tenant,
  toBody,
} from '../support/http/tenant-client.ts'
import { startStack, type TestStack } from '../support/process/stack.ts'
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
let receiver: Receiver
let running: TestStack
let tenant: Tenant
let alertId: string

/** Against a hang only. */
const hangMs = 3_600_000

beforeAll(async () => {
  ;[postgres, clickhouse] = await Promise.all([
    startPostgres(),
    startClickhouse({ users: [toEngineUser(hostileClickhouse)] }),
  ])
  const url = await postgres.createDatabase()
  await makeHostile(url)
  bouncer = await startPgbouncer('transaction', { url: postgres.url, poolSize: 70 })
  running = await startStack({
    env: { POSTGRES_URL: bouncer.through(url), CLICKHOUSE_URL: asStranger(clickhouse.url) },
  })
  receiver = await startReceiver()
  tenant = await createTenant(running.stack, 'bank', receiver.url)
  for (let n = 0; n < 8; n++) {
    const signals = n % 2 === 0 ? { root: { su_binary: true, magisk: true } } : {}
    await accept({ device: 'device-1', session: `session-${n}`, user: `user-${n % 3}`, signals })
  }
  await accept({ device: 'gone', session: 'gone' })
  alertId = await until('its alerts', async () => {
    const { alerts } = await readAlerts(running.stack, tenant.public_api_key)
    return alerts.length === 4 ? alerts[0]!.alert_id : null
  })
}, hangMs)
afterAll(async () => {
  await running?.discard()
  await receiver?.close()
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

async function accept(submission: Parameters<typeof toBody>[1]): Promise<void> {
  const body = toBody(tenant.tenant_id, submission)
  expect(await ingest(running.stack, tenant.hmac_secret, body)).toMatchObject({ status: 200 })
}

type Rows = { data: unknown[] }
const hasRows = (answer: object) =>
  Object.values(answer).some((rows) => Array.isArray(rows) && rows.length > 0)
const since = new Date(Date.now() - 3_600_000).toISOString()

describe('the REST API', () => {
  const call = async <T>(path: string) => {
    const { status, body } = await read<T>(running.stack, tenant.public_api_key, `/v1/di/${path}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body
  }

  it.each([
    'alerts?limit=2',
    `alerts?flag=ROOTED&min_score=1&from=${since}`,
    'alerts?after_seq=1',
    'events?limit=3',
    'events?signal=root.su_binary&user_id=user-0',
    'signals',
  ])('lists %s', async (path) => {
    await until('its rows', async () => hasRows(await call<Rows>(path)))
  })

  it('has the whole history of a device', async () => {
    const body = await until('the device', async () => {
      const device = await call<ApiDevice>('devices/device-1')
      return device.sessions_total === 8 ? device : null
    })
    expect([body.sessions.length, body.users_seen_on]).toEqual([8, ['user-0', 'user-1', 'user-2']])
    expect(body.first_seen_at >= since).toBe(true)
  })

  it('has the device of a user', async () => {
    expect(await call('users/user-1')).toMatchObject({ devices_total: 1 })
  })
})

describe('the console', () => {
  const call = <T>(method: string, path: string, body?: object) =>
    admin<T>(running.stack, method, path, body)

  it.each([
    '/tenants?limit=2',
    '/tenants/bank/alerts?assignee=none&user_id=user-0',
    '/tenants/bank/alerts/counts?by=flag',
    '/tenants/bank/cases?sort=risk',
    '/tenants/bank/deliveries?limit=2',
    '/tenants/bank/events/counts?by=flag',
    '/tenants/bank/audit',
    '/tenants/bank/devices/device-1/timeline',
    '/search?q=device-1&tenant_id=bank',
  ])('lists %s', async (path) => {
    await until('its rows', async () => hasRows(await call<Rows>('GET', path)))
  })

  it.each([
    '/tenants/bank/overview',
    '/tenants/bank/fleet',
    '/tenants/bank/rule-performance',
    '/tenants/bank/devices/device-1/links',
  ])('answers %s', async (path) => {
    expect(await call('GET', path)).toBeTruthy()
  })

  it('changes an alert, a list, labels, a policy and secrets', async () => {
    const confirmed = { disposition: 'CONFIRMED', note: 'a farm' }
    expect(await call('POST', `/alerts/${alertId}/disposition`, confirmed)).toMatchObject({
      disposition: 'CONFIRMED',
    })
    expect(await call('GET', `/alerts/${alertId}`)).toMatchObject({
      history: [{ to: 'CONFIRMED', note: 'a farm' }],
    })
    const entry = { list: 'deny', kind: 'device', id: 'device-2', reason: 'farm' }
    expect(await call('POST', '/tenants/bank/lists', entry)).toMatchObject({ id: 'device-2' })
    const label = { subject: { device_id: 'device-1' }, label: 'chargeback' }
    expect(await call<Rows>('POST', '/tenants/bank/labels', label)).toMatchObject({ data: [{}] })
    expect(await call('PUT', '/tenants/bank/policy', { preset: 'strict' })).toMatchObject({
      version: 2,
    })
    expect(await call('POST', '/tenants/bank/rotate', { hmac: true })).toHaveProperty('hmac_secret')
  })

  it('erases a device, and nothing else', async () => {
    await call('POST', '/tenants/bank/erasures', { device_id: 'gone' })
    const find = (device: string) =>
      read(running.stack, tenant.public_api_key, `/v1/di/devices/${device}`)
    expect([(await find('gone')).status, (await find('device-1')).status]).toEqual([404, 200])
  })
})

it('the jobs have copied, counted and compared what was accepted, and it agrees', async () => {
  const since = new Date().toISOString()
  const view = await until('reconciliation', async () => {
    const path = '/tenants/bank/reconciliation'
    const found = await admin<ReconciliationView>(running.stack, 'GET', path)
    return (found.as_of ?? '') > since && found.data.length > 0 ? found : null
  })
  expect(view).toMatchObject({ agrees: true })
})

it('no server has refused a statement of any process', () => {
  const logs = join(running.dataDir, 'logs')
  const refused = readdirSync(logs)
    .filter((name) => !/^(nats|clickhouse|postgres)/.test(name))
    .flatMap((name) => readFileSync(join(logs, name), 'utf8').split('\n'))
    .filter((line) => /"level":(50|60)|ClickHouse answered|"code":"[0-9A-Z]{5}"/.test(line))
  expect(refused).toEqual([])
})
