/**
 * The whole path with PgBouncer between every process and PostgreSQL, in both of its modes and as
 * Debian ships it, and a database whose defaults are far from ours: migrations, alerts raised and
 * delivered, lists by several filters at once, dispositions, rotations, a policy and an erasure.
 * Nothing may fail or remain.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type Receiver, startReceiver } from '../support/deliveries/receiver.ts'
import {
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
import { hostileBehindPooler, toDatabaseSettings } from '../support/servers/hostile-settings.ts'
import { startPgbouncer, type TestPgbouncer } from '../support/servers/pgbouncer-server.ts'
import { startPostgres, type TestPostgres } from '../support/servers/postgres-server.ts'

const signals = { debugger: { frida_detected: true } }
const alertsWanted = 60

let server: TestPostgres
let receiver: Receiver
beforeAll(async () => {
  server = await startPostgres()
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver?.close()
  await server?.stop()
})

describe.each(['transaction', 'session'] as const)('behind PgBouncer in %s mode', (mode) => {
  let bouncer: TestPgbouncer
  let running: TestStack
  let direct: Postgres
  let tenant: Tenant
  const ids = Array.from({ length: alertsWanted }, (_, n) => `device-${n}`)

  beforeAll(async () => {
    const url = await server.createDatabase()
    const own = createPostgres(server.url, { role: 'test', log: createLog('test', 'silent') })
    const settings = toDatabaseSettings(new URL(url).pathname.slice(1), hostileBehindPooler)
    for (const sql of settings) await own.query(sql)
    await own.close()
    bouncer = await startPgbouncer(mode, { url: server.url, poolSize: 70 })
    running = await startStack({ env: { POSTGRES_URL: bouncer.through(url) } })
    direct = createPostgres(url, { role: 'test', log: createLog('test', 'silent') })
    tenant = await createTenant(running.stack, 'acme', receiver.url)
  })
  afterAll(async () => {
    await direct?.close()
    await running?.discard()
    await bouncer?.stop()
  })

  it('raises and delivers every alert', async () => {
    const answers = await Promise.all(
      ids.map((device) =>
        ingest(running.stack, tenant.hmac_secret, toBody('acme', { device, signals })),
      ),
    )
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    await until('all alerts', async () => {
      const { total } = await readAlerts(running.stack, tenant.public_api_key)
      return total === alertsWanted
    })
    await until('all webhooks', () => {
      const got = ids.filter((id) =>
        receiver.requests.some(({ body }) => body.toString().includes(`"${id}"`)),
      )
      return got.length === alertsWanted
    })
    receiver.requests.length = 0
  })

  it('answers every list', async () => {
    const queries = ['', 'decision=BLOCK', 'disposition=OPEN', 'device_id=device-1', 'limit=7']
    const wrong: unknown[] = []
    // As many concurrent calls as the api has connections, repeatedly.
    const readTotals = async () => {
      for (let n = 0; n < 15; n++) {
        const query = queries[n % queries.length]!
        const { status, body } = await read<{ total: number }>(
          running.stack,
          tenant.public_api_key,
          `/v1/di/alerts?${query}`,
        )
        const total = query.startsWith('device') ? 1 : alertsWanted
        if (status !== 200 || body.total !== total) wrong.push({ query, status, body })
      }
    }
    await Promise.all(Array.from({ length: 12 }, readTotals))
    expect(wrong).toEqual([])
  })

  it('changes dispositions concurrently', async () => {
    const { alerts } = await readAlerts(running.stack, tenant.public_api_key)
    await Promise.all(
      alerts.slice(0, 20).map(({ alert_id }) =>
        admin(running.stack, 'POST', `/alerts/${alert_id}/disposition`, {
          disposition: 'CONFIRMED',
        }),
      ),
    )
    const list = await read<{ total: number }>(
      running.stack,
      tenant.public_api_key,
      '/v1/di/alerts?disposition=CONFIRMED',
    )
    expect(list.body.total).toBe(20)
  })

  it('rotates several times and for several tenants concurrently', async () => {
    const others = await Promise.all(
      ['globex', 'initech', 'umbrella'].map((id) => createTenant(running.stack, id)),
    )
    const rotateOnce = async (one: Tenant) => {
      const path = `/tenants/${one.tenant_id}/rotate`
      Object.assign(one, await admin<Partial<Tenant>>(running.stack, 'POST', path, { hmac: true }))
    }
    for (let turn = 0; turn < 3; turn++) await Promise.all([tenant, ...others].map(rotateOnce))
    for (const one of [tenant, ...others]) {
      const body = toBody(one.tenant_id, { device: 'after' })
      expect((await ingest(running.stack, one.hmac_secret, body)).status).toBe(200)
    }
  })

  it('erases a device', async () => {
    const path = '/tenants/acme/erasures'
    const erased = { device_id: 'device-1' }
    const { notes } = await admin<{ notes: string[] }>(running.stack, 'POST', path, erased)
    // The console may wake their removal.
    expect(notes.filter((note) => note.includes('replaced part folders'))).toEqual([])
    const list = await read<{ total: number }>(
      running.stack,
      tenant.public_api_key,
      '/v1/di/alerts?device_id=device-1',
    )
    expect(list.body.total).toBe(0)
  })

  it('leaves no lease and no transaction open, and every counter exact', async () => {
    await until('no lease is held but that of the console that runs reconciliation', async () => {
      const { rows } = await direct.query<{ n: number }>(
        `select (select count(*) from pg_locks where locktype = 'advisory' and database = (
             select oid from pg_database where datname = current_database()))
           + (select count(*) from leases where name <> 'reconciliation') as n`,
      )
      return rows[0]!.n === 0
    })
    const { rows } = await direct.query(
      `select (select count(*) from alerts) as alerts,
         (select sum(alert_count) from alert_counts_by_day) as by_day,
         (select sum(alert_count) from alert_counts_by_hour) as by_hour`,
    )
    const { alerts, by_day, by_hour } = rows[0]!
    expect([Number(by_day), Number(by_hour)]).toEqual([alerts, alerts])
    expect(running.output()).not.toMatch(/prepared statement|unsupported startup/)
  })
})
