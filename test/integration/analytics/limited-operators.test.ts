// SQL of operators who are limited to some tenants. On the embedded engine it is refused, as is
// making analysts. On a ClickHouse server it runs as a user of the tenant, and neither an answer nor
// an EXPLAIN says how many rows of others the engine read. The server is the embedded engine with
// the user in its file that the console would make.
import { hash, randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dayMs } from '#shared/core/base/instants.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import {
  createOperatorsRig,
  type Member,
  type OperatorsRig,
} from '../../support/http/operators-rig.ts'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'

const database = 'device_intelligence'
const sealer = createSealer([randomBytes(32).toString('base64')])
const wallMs = Date.now()
let rig: OperatorsRig
let engine: TestClickhouse
let clickhouse: Clickhouse
/** Consoles on the embedded engine and on a server. */
let local: FastifyInstance
let ofServer: FastifyInstance
let limited: Member
let ofAll: Member

beforeAll(async () => {
  const day = Math.floor(wallMs / dayMs)
  const password = sealer.proverOf('console analyst').prove(['acme', day], '')
  const user = {
    name: 'analyst.acme.console',
    passwordSha256Hex: hash('sha256', password),
    grants: [],
    isAnalyst: true as const,
  }
  ;[rig, engine] = await Promise.all([createOperatorsRig(), startClickhouse({ users: [user] })])
  const clickhouseUrl = `${engine.url}/${database}`
  await migrateClickhouse(clickhouseUrl)
  for (const tenant_id of ['acme', 'globex']) {
    await rig.must(201, 'POST', '/tenants', { token: rig.adminToken, body: { tenant_id } })
    const body = `insert into ${database}.telemetry (tenant_id, device_id, session_id, event_id,
        received_at, user_id, body, detected_signals)
      select '${tenant_id}', toString(number), '1', toString(number), now64(3),
        concat('${tenant_id}-u', toString(number)), '{"signals":{}}', [] from numbers(20)`
    expect((await callClickhouse(engine.url, { method: 'POST', body })).text).toBe('')
  }
  clickhouse = createClickhouse(clickhouseUrl, { name: 'test' })
  const analysts = { clickhouse, database, clickhouseUrl, url: clickhouseUrl }
  const clocks = { sealer, wallMs: () => wallMs }
  local = await rig.createApp({ analysts: { ...analysts, isEmbedded: true } })
  const storing = { ...analysts, clickhouse: asServer(clickhouse), isEmbedded: false }
  ofServer = await rig.createApp({ ...clocks, analysts: storing })
  limited = await rig.join('admin', ['acme'])
  ofAll = await rig.join('admin', 'all')
})
afterAll(async () => {
  await clickhouse?.close()
  await Promise.all([rig?.close(), engine?.stop()])
})

/** The engine as a server that stores the users that it has in its file. */
const asServer = (node: Clickhouse): Clickhouse => ({
  ...node,
  query: ((given: { query: string }) =>
    given.query.includes('system.user_directories')
      ? { json: async () => [{ n: 1 }] }
      : node.query(given as never)) as never,
  command: (async () => ({})) as never,
})

const call = async (
  app: FastifyInstance,
  member: Member,
  method: string,
  path: string,
  body = {},
) => {
  const cookie = await rig.openSession(member.operatorId, { steppedUp: true })
  return rig.call(method, path, { app, cookie, ...(method === 'GET' ? {} : { body }) })
}
const runSql = async (member: Member, sql: string) => {
  const { status, text } = await call(ofServer, member, 'POST', '/tenants/acme/sql', { sql })
  return { status, body: JSON.parse(text) }
}

describe('on the embedded engine', () => {
  const refused = [
    ['/tenants/acme/sql', { sql: 'select 1' }],
    ['/tenants/acme/sql', { sql: 'select 1', format: 'csv' }],
    ['/tenants/acme/analysts', { name: 'mine' }],
    ['/tenants/acme/analysts/mine/password', {}],
  ] as const
  it.each(refused)('a limited operator is told of a server by %s %o', async (path, body) => {
    const answer = await call(local, limited, 'POST', path, body)
    expect([answer.status, answer.body.code]).toEqual([409, 'analysts_need_a_server'])
    expect(answer.text).toContain('deploy/clickhouse/analysts.sql')
  })

  it('others make analysts, with a warning', async () => {
    const made = await call(local, ofAll, 'POST', '/tenants/acme/analysts', { name: 'mine' })
    expect([made.status, JSON.parse(made.text).warning]).toEqual([
      201,
      expect.stringContaining('no wall'),
    ])
  })

  it('the page knows before a query', async () => {
    const needs = async (app: FastifyInstance, member: Member) =>
      JSON.parse((await call(app, member, 'GET', '/sql/views')).text).needs_server
    expect(await needs(local, limited)).toBe(true)
    expect(await needs(local, ofAll)).toBe(false)
    expect(await needs(ofServer, limited)).toBe(false)
  })
})

describe('on a server', () => {
  it('a limited operator reads the rows of the tenant, in the order of the query', async () => {
    const { status, body } = await runSql(
      limited,
      `with 'acme' as mine select toUInt8(device_id) as device, tenant_id = mine
       from events order by device desc ;\n`,
    )
    expect(status).toBe(200)
    expect(body.rows).toEqual(Array.from({ length: 20 }, (_, n) => [19 - n, 1]))
    expect(body.columns[0]).toEqual({ name: 'device', type: 'UInt8' })
  })

  it('nothing says what the engine read for a limited operator', async () => {
    const sql = 'select count() from events'
    const seen = await runSql(ofAll, sql)
    expect([seen.body.rows, seen.body.rows_read > 0]).toEqual([[['20']], true])
    const { body } = await runSql(limited, sql)
    expect([body.rows, body.rows_read, body.bytes_read]).toEqual([[['20']], null, null])
  })

  it.each([
    'explain estimate select * from events',
    'explain select 1',
    'select 1) union all select 1 from (explain estimate select * from events',
    "select * from viewExplain('EXPLAIN ESTIMATE', '', (select * from events))",
    'select 1) settings max_threads = 1; explain estimate select * from (select 1',
    'select 1 format JSON',
    'select count() from system.processes',
  ])('a limited operator gets no count of the engine by: %s', async (sql) => {
    const { status, body } = await runSql(limited, sql)
    expect([status, body.code]).toEqual([422, 'query_failed'])
  })

  it('an error names the place in the text of the operator', async () => {
    const sql = 'select device_id\nfrom events\nwhere where 1'
    const places = []
    for (const member of [ofAll, limited]) {
      const { detail } = (await runSql(member, sql)).body
      places.push(/failed at position \d+ .*?\(line \d+, col \d+\)/.exec(detail)?.[0])
    }
    expect(places[0]).toContain('line 3')
    expect(places[1]).toBe(places[0])
  })
})
