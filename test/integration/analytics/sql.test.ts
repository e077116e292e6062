// Operators' queries in SQL and the fleet over time, over the admin API on the real engine: a query
// reads its own tenant with an analyst's rights, is in the audit log, and returns rows, a CSV or
// the engine's own error.
import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import {
  fleetPointsMax,
  sqlParametersBytesMax,
  sqlQueries,
  sqlRowsBytesMax,
  sqlRowsMax,
} from '#shared/core/base/limits/analytics.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'
import { toWalkDeps } from '../../support/analytics/walked-fleet.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { describeWalk } from './walk.ts'

const adminToken = randomBytes(32).toString('base64url')
let rig: AnalystsRig
let app: FastifyInstance
let port = 0
let aheadMs = 0
/** The statements that wait in the console's connection to Postgres, and their release. */
let isHeld: (values: readonly unknown[]) => boolean = () => false
const waitingStatements: (() => void)[] = []
const releaseHeld = () => {
  isHeld = () => false
  for (const go of waitingStatements.splice(0)) go()
}

beforeAll(async () => {
  rig = await createAnalystsRig()
  const query: typeof rig.postgres.query = async (sql, values) => {
    const all = typeof sql === 'string' ? values : sql.values
    if (isHeld(all ?? [])) await new Promise<void>((resolve) => waitingStatements.push(resolve))
    return rig.postgres.query(sql as string, values)
  }
  const deps = {
    ...rig.deps,
    postgres: { ...rig.postgres, query },
    publicUrl: () => 'http://127.0.0.1:8082',
    adminToken,
    log: testLog,
    sealer: createSealer([randomBytes(32).toString('base64')]),
    nowMs: () => performance.now(),
    wallMs: () => Date.now() + aheadMs,
    fleet: createFleetStore(rig.deps.analysts.clickhouse),
    ...toWalkDeps(rig),
  }
  // The other routes are not called.
  app = await createConsoleApp(deps as unknown as ConsoleDeps, {
    log: testLog,
    metrics: createMetrics('console'),
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
})

async function call(method: 'GET' | 'POST', path: string, body?: object) {
  const response = await app.inject({
    method,
    url: `/admin/v1${path}`,
    headers: { authorization: `Bearer ${adminToken}` },
    ...(body === undefined ? {} : { payload: body }),
  })
  return { status: response.statusCode, text: response.body, headers: response.headers }
}

async function runSql(sql: string, more: object = {}, tenant = 'acme') {
  const { status, text } = await call('POST', `/tenants/${tenant}/sql`, { sql, ...more })
  return { status, body: JSON.parse(text) }
}

describe('a query', () => {
  it('is answered with columns, types and rows', async () => {
    const { status, body } = await runSql(
      `select device_id, count() as events, max(received_at) as at from events
       where device_id = {device:String} group by device_id`,
      { parameters: { device: 'acme-3' } },
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({
      columns: [
        { name: 'device_id', type: 'String' },
        { name: 'events', type: 'UInt64' },
        { name: 'at', type: "DateTime64(3, 'UTC')" },
      ],
      rows: [['acme-3', '5', expect.stringMatching(/^\d{4}-\d\d-\d\dT.+Z$/)]],
      truncated: false,
    })
    expect(body.rows_read).toBeGreaterThan(0)
  })

  it("can be each of the examples in the API's document", async () => {
    for (const sql of ['select 1', 'describe events']) expect((await runSql(sql)).status).toBe(200)
  })

  it('reads only the tenant of its path, with any tenant in its text', async () => {
    for (const tenant of ['acme', 'globex']) {
      for (const view of ['events', 'alerts', 'devices']) {
        const { body } = await runSql(`select distinct tenant_id from ${view}`, {}, tenant)
        expect([view, body.rows]).toEqual([view, [[tenant]]])
      }
    }
    const named = { parameters: { tenant: 'globex' } }
    const own = await runSql('select {tenant:String}', named)
    expect(own.body.rows).toEqual([['acme']])
    const other = await runSql("select count() from events where tenant_id = 'globex'")
    expect(other.body.rows).toEqual([['0']])
  })

  it('has the rights of an analyst and not those of the console', async () => {
    const attempts = [
      'select * from device_intelligence.telemetry limit 1',
      'drop view analytics.events',
      "select * from file('/etc/passwd', 'LineAsString')",
      "insert into analytics.events (tenant_id) values ('acme')",
      'select 1; select 2',
    ]
    for (const sql of attempts) {
      const { status, body } = await runSql(sql)
      expect([sql, status, body.code]).toEqual([sql, 422, 'query_failed'])
    }
    expect((await runSql('select count() from events')).body.rows).toEqual([['50']])
  })

  it('that the engine rejects is answered with the engine’s message', async () => {
    const { status, body } = await runSql('select nothing_like_it from events')
    expect([status, body.code]).toEqual([422, 'query_failed'])
    expect(body.detail).toContain('nothing_like_it')
    expect(body.detail).not.toContain('version')
    const formatted = await runSql('select 1 format Pretty')
    expect([formatted.status, formatted.body.detail]).toEqual([
      422,
      'Leave FORMAT out: a query is answered as rows or as a CSV.',
    ])
  })

  it('shows a bounded number of rows, and all of them as CSV', async () => {
    const sql = `select number from numbers(${sqlRowsMax + 5})`
    const shown = await runSql(sql)
    expect([shown.body.rows.length, shown.body.truncated]).toEqual([sqlRowsMax, true])
    const exact = await runSql(`select number from numbers(${sqlRowsMax})`)
    expect([exact.body.rows.length, exact.body.truncated]).toEqual([sqlRowsMax, false])
    const csv = await call('POST', '/tenants/acme/sql', { sql, format: 'csv' })
    expect([csv.status, csv.headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8'])
    const lines = csv.text.trimEnd().split('\r\n')
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([
      sqlRowsMax + 6,
      '"number"',
      `${sqlRowsMax + 4}`,
    ])
  })

  it('is in the audit log of its tenant, also when it fails', async () => {
    const sql = 'select a_query_of_this_test'
    await runSql(sql, { parameters: { one: '1' } })
    const rows = await listAudit(rig.postgres, { tenantId: 'acme', limit: 1 })
    expect(rows).toMatchObject([
      {
        actor: 'admin',
        action: 'sql.queried',
        after: { sql, parameters: { one: '1' }, format: 'rows' },
      },
    ])
  })

  it('works after the password of its analyst was changed, and on the next day', async () => {
    const hashOf = async () => {
      const { rows } = await rig.postgres.query<{ password_hash: Buffer }>(
        "select password_hash from analysts where tenant_id = 'acme' and name = 'console'",
        [],
      )
      return rows[0]!.password_hash.toString('hex')
    }
    const first = await hashOf()
    await rig.postgres.query(
      "update analysts set password_hash = $1 where tenant_id = 'acme' and name = 'console'",
      [randomBytes(32)],
    )
    expect((await runSql('select 1')).status).toBe(200)
    expect(await hashOf()).toBe(first)
    aheadMs = dayMs
    expect((await runSql('select 1')).status).toBe(200)
    aheadMs = 0
    expect(await hashOf()).not.toBe(first)
  })

  it('has an analyst that is neither listed nor created by a person', async () => {
    const { text } = await call('GET', '/tenants/acme/analysts')
    expect(JSON.parse(text).data.map(({ name }: { name: string }) => name)).toEqual(['own'])
    const made = await call('POST', '/tenants/acme/analysts', { name: 'console' })
    expect(made.status).toBe(400)
  })

  it('as CSV has no cell that a spreadsheet would run, and numbers unchanged', async () => {
    const sql = `select '=1+1' as a, -5 as b, toInt64(-9007199254740993) as "=c", 'x,"=y' as d,
      '"=z' as e, '' as f, ['-1'] as g, concat(char(9), 'x') as h, null as i`
    const { text } = await call('POST', '/tenants/acme/sql', { sql, format: 'csv' })
    expect(text).toBe(
      `"a","b","'=c","d","e","f","g","h","i"\r\n` +
        `"'=1+1",-5,-9007199254740993,"x,""=y","""=z","","[""-1""]","'\tx",\\N\r\n`,
    )
  })

  it('as CSV refuses a row that would fill the memory', async () => {
    const sql = 'select repeat(repeat(char(97), 1000000), 20) as a'
    const { status, text } = await call('POST', '/tenants/acme/sql', { sql, format: 'csv' })
    expect([status, text]).toEqual([422, expect.stringContaining('select less of it')])
  })

  it('for Excel has a byte order mark, and ids of digits as text', async () => {
    const sql = `select '00123' as a, toUInt64(1234567890123456789) as b, 12 as c, null as d`
    const { text } = await call('POST', '/tenants/acme/sql', { sql, format: 'excel' })
    expect(text).toBe(`\ufeff"a","b","c","d"\r\n"=""00123""","=""1234567890123456789""",12,\r\n`)
  })

  it('shows numbers that JSON does not have', async () => {
    const { body } = await runSql('select nan as a, inf as b, -inf as c')
    expect(body.rows).toEqual([['nan', 'inf', '-inf']])
  })

  it('says how to compare with an instant as the API writes it', async () => {
    const { body } = await runSql('select received_at as at from events order by at limit 1')
    const at = String(body.rows[0]![0])
    expect(at).toMatch(/Z$/)
    const compare = (instant: string) =>
      runSql(`select count() > 0 as a from events where received_at between ${instant} and now()`)
    const { body: plain } = await compare(`'${at}'`)
    expect(plain.detail).toContain('Write parseDateTime64BestEffort(')
    const { body: found } = await compare(`parseDateTime64BestEffort('${at}', 3)`)
    expect(found.rows).toEqual([[1]])
  })

  it('points to typed columns, and to the signal that was meant', async () => {
    const untyped = await runSql('select avg(signals.network.vpn_active) from events')
    expect([untyped.status, untyped.body.detail]).toEqual([
      422,
      expect.stringContaining('typed_events'),
    ])
    const parameters = { signal: 'su_binary' }
    const { body } = await runSql('select {signal:String} as a', { parameters })
    expect(body.hints).toEqual([
      'su_binary is not category.signal of the catalog; did you mean root.su_binary?',
    ])
    const known = await runSql('select {signal:String} as a', {
      parameters: { signal: 'root.su_binary' },
    })
    expect(known.body.hints).toEqual([])
  })

  it('has at most the bytes of a page, and reports a first row that is larger', async () => {
    const long = `repeat(repeat('x', 1024), ${sqlRowsBytesMax / 1_024})`
    const first = await runSql(`select repeat(repeat('x', 1024), ${(7 * sqlRowsBytesMax) / 1_024})`)
    expect([first.status, first.body.code]).toEqual([422, 'query_failed'])
    expect(first.body.detail).toContain(`${sqlRowsBytesMax} bytes`)
    const second = await runSql(`select if(number = 0, 'é', ${long}) from numbers(2)`)
    expect(second.body).toMatchObject({ rows: [['é']], truncated: true })
    const within = await runSql(`select repeat(repeat('x', 1024), ${sqlRowsBytesMax / 1_024 - 1})`)
    expect([within.body.rows.length, within.body.truncated]).toEqual([1, false])
  })

  it('has parameters with a bounded total size', async () => {
    const of = (count: number, value: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, value]))
    for (const value of ['é'.repeat(1_000), '\\'.repeat(1_000)]) {
      const { status, body } = await runSql('select 1', { parameters: of(32, value) })
      expect([status, body.errors?.[0]]).toEqual([
        400,
        {
          path: '$.parameters',
          message: expect.stringContaining(`${sqlParametersBytesMax} bytes`),
        },
      ])
    }
    for (const value of ['\\', 'é']) {
      // As `param_p0=` and six bytes per character.
      const most = of(1, value.repeat(1_000))
      const { status, body } = await runSql('select {p0:String}', { parameters: most })
      expect([status, body.rows]).toEqual([200, [[most.p0]]])
    }
  })

  it('of an unknown tenant is rejected', async () => {
    const { status, body } = await runSql('select 1', {}, 'nobody')
    expect([status, body.code]).toEqual([404, 'tenant_not_found'])
  })
})

describe('concurrent queries', () => {
  const open = (tenant: string, body: object) => {
    const payload = JSON.stringify(body)
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    socket.write(
      `POST /admin/v1/tenants/${tenant}/sql HTTP/1.1\r\nhost: console\r\n` +
        `authorization: Bearer ${adminToken}\r\ncontent-type: application/json\r\n` +
        `content-length: ${payload.length}\r\n\r\n${payload}`,
    )
    return socket
  }
  const leave = async (sockets: Socket[]) => {
    for (const socket of sockets) socket.resetAndDestroy()
    await until('closed connections', async () => {
      const count = await new Promise((resolve) => app.server.getConnections((_, n) => resolve(n)))
      return count === 0 ? true : null
    })
  }
  const many = 2 * sqlQueries.total
  const openMany = (body: object) => Array.from({ length: many }, () => open('acme', body))
  const heldAre = (count: number) =>
    until(`${count} waiting statements`, () => (waitingStatements.length === count ? true : null))

  it('release their slot when their clients leave, however early', async () => {
    for (const format of ['rows', 'csv']) {
      // The look-up of the tenant, and then the entry of the audit log.
      isHeld = (values) => values[0] === 'acme'
      const early = openMany({ sql: 'select 1', format })
      await heldAre(many)
      await leave(early)
      releaseHeld()
      expect([format, (await runSql('select 1')).status]).toEqual([format, 200])
      isHeld = (values) => values[2] === 'sql.queried'
      const later = openMany({ sql: 'select 1', format })
      await heldAre(sqlQueries.perTenant)
      await leave(later)
      releaseHeld()
      expect([format, (await runSql('select 1')).status]).toEqual([format, 200])
      const reading = openMany({ sql: 'select number from numbers(100000)', format })
      await new Promise((resolve) => reading[0]!.once('data', resolve))
      await leave(reading)
      expect([format, (await runSql('select 1')).status]).toEqual([format, 200])
    }
  })

  it('of one tenant leave slots to the others, and are rejected beyond its own', async () => {
    isHeld = (values) => values[1] === 'acme' && values[2] === 'sql.queried'
    const waiting = openMany({ sql: 'select 1' })
    await heldAre(sqlQueries.perTenant)
    expect((await runSql('select 1', {}, 'globex')).status).toBe(200)
    const more = await runSql('select 1')
    expect([more.status, more.body.code]).toEqual([503, 'unavailable'])
    await leave(waiting)
    releaseHeld()
    expect((await runSql('select 1')).status).toBe(200)
  })
})

describe('around the query', () => {
  it('the schema lists every view with its columns', async () => {
    const { status, text } = await call('GET', '/sql/views')
    expect(status).toBe(200)
    const { database, data } = JSON.parse(text)
    expect(database).toBe('analytics')
    const names = data.map(({ name }: { name: string }) => name)
    expect(names).toEqual([...names].sort())
    expect(names).toEqual(expect.arrayContaining(['events', 'alerts', 'precision_by_flag']))
    const events = data.find(({ name }: { name: string }) => name === 'events')
    expect(events.comment).toContain('Every accepted event once')
    expect(events.columns[0]).toEqual({
      name: 'tenant_id',
      type: 'LowCardinality(String)',
      comment: 'The tenant.',
    })
  })

  it('every question of the cookbook runs as it is listed', async () => {
    const { text } = await call('GET', '/sql/cookbook')
    const { data } = JSON.parse(text)
    expect(data.length).toBeGreaterThanOrEqual(20)
    const times = { from: '2020-01-01 00:00:00.000', to: '2100-01-01 00:00:00.000' }
    for (const { name, sql, parameters } of data.slice(0, 5)) {
      const { status } = await runSql(sql, { parameters: { ...parameters, ...times } })
      expect([name, status]).toEqual([name, 200])
    }
  })
})

describe('the fleet', () => {
  it('counts events, devices, sessions and signals by version and over time', async () => {
    const { status, text } = await call('GET', '/tenants/acme/fleet')
    const fleet = JSON.parse(text)
    expect(status).toBe(200)
    expect(fleet.totals).toEqual({ events: 50, devices: 10, sessions: 20, new_devices: 10 })
    expect(fleet.step_seconds).toBe(3_600)
    const sum = (values: number[]) => values.reduce((total, one) => total + one, 0)
    expect(fleet.times.length).toBe(25)
    for (const [name, total] of [
      ['events', 50],
      ['new_devices', 10],
    ]) {
      const values = fleet.over_time[name as string]
      expect([name, values.length, sum(values)]).toEqual([name, 25, total])
    }
    expect(fleet.versions).toMatchObject([
      { platform: 'android', sdk_version: '', events: 50, devices: 10, sessions: 20 },
    ])
    expect(fleet.versions[0].devices_over_time.length).toBe(25)
    expect(fleet.platforms).toMatchObject([{ platform: 'android' }])
    expect(fleet.signals).toEqual([
      { signal: 'root.su_binary', devices: 10, share: 1, by_version: [1] },
    ])
  })

  it('has the largest platforms and versions, however many texts clients send', async () => {
    const fromMs = Date.parse('2020-02-01')
    await rig.asService(`
      insert into telemetry (tenant_id, device_id, session_id, event_id, received_at, body,
        platform, sdk_version)
      select 'acme', concat('d', toString(number % 2)), '1', toString(number),
        toDateTime64('2020-02-01 00:00:00', 3, 'UTC'), '{}',
        if(number < 12000, concat('p', toString(number)), 'android'),
        if(number < 12000, concat('v', toString(number)), '1.0')
      from numbers(12010)`)
    const answer = await call('GET', '/tenants/acme/fleet?from=2020-02-01&to=2020-02-02')
    const fleet = JSON.parse(answer.text)
    expect([fleet.totals.events, fleet.totals.devices]).toEqual([12_010, 2])
    expect([fleet.platforms.length, fleet.versions.length]).toEqual([50, 50])
    expect(fleet.versions[0]).toMatchObject({ platform: 'android', sdk_version: '1.0', events: 10 })
    const [android] = fleet.platforms
    expect([android.platform, android.events[0]]).toEqual(['android', 10])
    const span = { tenantId: 'acme', fromMs, toMs: fromMs + dayMs, stepSeconds: 3_600 }
    const read = await createFleetStore(rig.deps.analysts.clickhouse).readCounts(span)
    const { all, versions, byPlatform, byVersion } = read
    expect([all, versions, byPlatform, byVersion].map(({ length }) => length)).toEqual([
      1,
      ...Array(3).fill(fleetPointsMax),
    ])
  })

  it('over a time span without events is empty, and over a too long one rejected', async () => {
    const empty = await call('GET', '/tenants/acme/fleet?from=2020-01-01&to=2020-01-03')
    const fleet = JSON.parse(empty.text)
    expect(fleet.totals).toEqual({ events: 0, devices: 0, sessions: 0, new_devices: 0 })
    expect([fleet.versions, fleet.signals]).toEqual([[], []])
    expect(fleet.times.length).toBe(48)
    const long = await call('GET', '/tenants/acme/fleet?from=2020-01-01&to=2020-06-01')
    expect([long.status, JSON.parse(long.text).code]).toEqual([400, 'invalid_query'])
    const turned = await call('GET', '/tenants/acme/fleet?from=2020-01-03&to=2020-01-01')
    expect(turned.status).toBe(400)
  })
})

describeWalk(() => ({ app, rig, token: adminToken }))
