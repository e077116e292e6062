// Analysts of the local stack on the real engine: each reads only its own tenant through the views,
// changes nothing, and leaves the scorer enough resources; for a server with real users the same as
// statements that the engine's parser accepts.

import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  toAccessStatements,
  toGuardStatement,
  toRemovalStatement,
  toUserStatements,
} from '#shared/io/analytics/analyst-access-store.ts'
import {
  createAnalyst,
  listTenantAnalysts,
  removeTenantAnalyst,
} from '../../../services/console/analytics/manage-analysts.ts'
import { attempts, tenantViews } from '../../support/analytics/analyst-attempts.ts'
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'
import { until } from '../../support/process/until.ts'

let rig: AnalystsRig
beforeAll(async () => {
  rig = await createAnalystsRig()
})
afterAll(() => rig?.close())

describe('an analyst', () => {
  it.each(Object.entries(attempts))('gains nothing by attempting %s', async (_, list) => {
    const wrong = []
    for (const one of list) {
      const { got, text } = await rig.attempt(one)
      if (got !== one.gets) wrong.push([one.what, got, one.gets])
      expect(/globex-|alr_globex|of globex|root:x:/.test(text)).toBe(false)
    }
    expect(wrong).toEqual([])
  })

  it('is tested with at least 60 attempts', () => {
    expect(Object.values(attempts).flat().length).toBeGreaterThanOrEqual(60)
  })

  it('has changed nothing, including merges', async () => {
    const counts = 'select count(), uniqExact(tenant_id) from device_intelligence.telemetry'
    expect(await rig.asService(counts)).toBe('100\t2')
    await rig.asService('optimize table device_intelligence.telemetry final')
  })

  it('reads its own rows through every view, each in its own database', async () => {
    for (const view of tenantViews) {
      const query = `select count() > 0, uniqExact(tenant_id), any(tenant_id) from ${view}`
      expect([view, (await rig.runQuery({ query })).text]).toEqual([view, '1\t1\tacme\n'])
      expect((await rig.runQuery({ query }, rig.globex)).text).toBe('1\t1\tglobex\n')
      expect(await rig.asService(`select uniqExact(tenant_id) from analytics.${view}`)).toBe('2')
    }
  })

  it('can query every existing view', async () => {
    const { text } = await rig.runQuery({
      query: "select name from system.tables where name != 'user_devices_as_of'",
    })
    const views = text.trim().split('\n')
    expect(views.length).toBeGreaterThanOrEqual(13)
    for (const view of views) {
      const { status, text } = await rig.runQuery({
        query: `select * from ${view} limit 1 format Null`,
      })
      expect([view, status, text]).toEqual([view, 200, ''])
      const columns = await rig.runQuery({
        query: `select arrayStringConcat(groupArray(name), ', ') from system.columns
                where table = '${view}' format TSVRaw`,
      })
      const named = await rig.runQuery({
        query: `select ${columns.text} from ${view} limit 1 format Null`,
      })
      expect([view, named.status, named.text]).toEqual([view, 200, ''])
    }
  })

  it('sees no system table except those that a client needs', async () => {
    const names = (await rig.asService("select name from system.tables where database = 'system'"))
      .split('\n')
      .sort()
    const open: string[] = []
    for (const name of names) {
      const { status } = await rig.runQuery({ query: `select * from system.${name} limit 1` })
      if (status === 200) open.push(name)
    }
    expect(open).toEqual([
      'aggregate_function_combinators',
      'collations',
      'columns',
      'completions',
      'contributors',
      'current_roles',
      'data_type_families',
      'database_engines',
      'databases',
      'dictionary_layouts',
      'disk_types',
      'enabled_roles',
      'formats',
      'functions',
      'licenses',
      'one',
      'privileges',
      'quota_usage',
      'settings',
      'table_engines',
      'table_functions',
      'tables',
      'time_zones',
    ])
  })

  it('joins, nests, windows and parameters as in any ClickHouse', async () => {
    const query = `
      with busy as (
        select device_id, count() as events from events
        group by device_id having events >= {n:UInt8}
      )
      select count(), sum(events), max(place) from (
        select busy.device_id, events, row_number() over (order by busy.device_id) as place
        from busy join devices using (device_id)
        where device_id in (select device_id from signals where signal = 'root.su_binary')
      )`
    expect((await rig.runQuery({ query, params: { param_n: '5' } })).text).toBe('10\t50\t10\n')
  })
})

describe('the proxy', () => {
  it('serves the official client as a ClickHouse does', async () => {
    const { user: username, password, url } = rig.acme
    const client = createClient({
      url,
      username,
      password,
      compression: { response: true },
      log: { level: ClickHouseLogLevel.OFF },
    })
    const result = await client.query({
      query: 'select tenant_id, count() as n from events where user_id = {u:String} group by all',
      query_params: { u: 'acme-u1' },
      format: 'JSONEachRow',
      clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
    })
    expect(await result.json()).toEqual([{ tenant_id: 'acme', n: 10 }])
    await expect(client.query({ query: 'select * from nothing' })).rejects.toMatchObject({
      code: '60',
      type: 'UNKNOWN_TABLE',
    })
    expect(await client.ping({ select: true })).toEqual({ success: true })
    await client.close()
  })

  it('answers the first queries of clients: version, zone, settings, tables, columns', async () => {
    const runQuery = async (query: string) => (await rig.runQuery({ query })).text
    expect(await runQuery('select version(), timezone()')).toMatch(/^26\.\d+\.\d+\.\d+\tUTC\n$/)
    expect(await runQuery("select value from system.settings where name = 'readonly'")).toBe('1\n')
    expect((await runQuery('show tables')).split('\n')).toContain('events')
    expect(await runQuery('describe table events')).toContain('tenant_id\tLowCardinality(String)')
    expect(await runQuery('exists table events')).toBe('1\n')
    const columns = "select count() from system.columns where table = 'events'"
    expect(Number(await runQuery(columns))).toBeGreaterThan(20)
  })

  it('accepts a query by GET, by POST and by both, and credentials in three ways', async () => {
    const { user, password } = rig.acme
    const get = { method: 'GET', query: '', params: { query: 'select 1', default_format: 'CSV' } }
    expect((await rig.runQuery(get)).text).toBe('1\n')
    expect((await rig.runQuery({ query: '+ 1', params: { query: 'select 1' } })).text).toBe('2\n')
    const own = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password }
    expect((await rig.runQuery({ query: 'select 1', user: 'x', headers: own })).text).toBe('1\n')
    const reply = await fetch(`${rig.proxy.url}/?user=${user}&password=${password}&query=select+1`)
    expect(await reply.text()).toBe('1\n')
    const json = { 'X-ClickHouse-Format': 'JSONEachRow' }
    expect((await rig.runQuery({ query: 'select 1 as n', headers: json })).text).toBe('{"n":1}\n')
    expect(await (await fetch(`${rig.proxy.url}/ping`)).text()).toBe('Ok.\n')
  })
})

/** The heaviest allowed query: every column of every event, in one thread, for up to 30 s. */
const heaviest = `select device_id, uniqExact(event_id), max(length(body)), groupUniqArray(platform)
  from events group by device_id order by 2 desc limit 10 format Null`

describe('under the load of analysts', () => {
  const bulkRows = 1_000_000

  beforeAll(async () => {
    // Attached as a whole part, bypassing the views that fill every other table.
    for (const statement of [
      'create table bulk as telemetry',
      `insert into bulk (tenant_id, device_id, session_id, event_id, received_at, body,
         detected_signals, platform)
       select 'acme', concat('d', toString(number % 200000)), toString(number % 3),
         toString(number), toDateTime64('2026-03-01 00:00:00', 3, 'UTC') + number,
         '{"signals":{}}', ['root.su_binary'], 'android'
       from numbers(${bulkRows})
       settings max_insert_threads = 2`,
      `alter table telemetry attach partition 202603 from bulk`,
    ]) {
      await rig.asService(statement)
    }
  })
  afterAll(() => rig.asService('alter table telemetry drop partition 202603'))

  it('the scorer’s inserts continue', async () => {
    const before = await timeInserts('quiet', 15)
    let answered = 0
    let stopped = false
    const analyst = async (as: typeof rig.acme) => {
      while (!stopped) {
        const { status, text } = await rig.runQuery({ query: heaviest }, as)
        expect([status, text]).toEqual([200, ''])
        answered++
      }
    }
    const analysts = [rig.acme, rig.acme, rig.globex, rig.globex].map(analyst)
    await until('analysts are busy', () => answered >= analysts.length)
    const during = await timeInserts('busy', 15)
    stopped = true
    await Promise.all(analysts)
    expect(answered).toBeGreaterThan(0)
    const ratio = during.medianMs / before.medianMs
    process.stdout.write(
      `inserts of 500 events, ms: median ${before.medianMs}, slowest ${before.slowestMs}; beside ` +
        `four analysts' heaviest queries over ${bulkRows} rows: median ${during.medianMs}, ` +
        `slowest ${during.slowestMs}; ratio of medians ${ratio.toFixed(1)}\n`,
    )
    expect(ratio).toBeLessThan(8)
    expect(during.slowestMs).toBeLessThan(5_000)
  })

  it('two queries of a tenant and four in all run at once, and others wait', async () => {
    const limits = { perTenant: 2, total: 4, queuePerTenant: 16, waitMs: 60_000 }
    const proxy = await rig.openProxy({ limits })
    const running: number[] = []
    let stopped = false
    const watch = async () => {
      while (!stopped) {
        const count = await rig.asService(
          "select count() from system.processes where user = 'analyst' and query not like '%tokenizeQuery%'",
        )
        running.push(Number(count))
      }
    }
    const watching = watch()
    const slow = { query: 'select sum(sipHash64(number)) from numbers(10000000) format Null' }
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => rig.runQuery(slow, rig.acme, proxy)),
    )
    const mine = Math.max(...running)
    const both = [rig.acme, rig.globex].flatMap((as) =>
      Array.from({ length: 4 }, () => rig.runQuery(slow, as, proxy)),
    )
    replies.push(...(await Promise.all(both)))
    stopped = true
    await watching
    await proxy.close()
    expect(replies.map(({ status }) => status)).toEqual(Array(16).fill(200))
    expect(mine).toBeLessThanOrEqual(2)
    expect(Math.max(...running)).toBeLessThanOrEqual(4)
  })

  it('a flood is rejected with a code that clients know, and service continues', async () => {
    const slow = { query: 'select sum(sipHash64(number)) from numbers(3000000) format Null' }
    const flood = await Promise.all(Array.from({ length: 40 }, () => rig.runQuery(slow)))
    const refused = flood.filter(({ status }) => status !== 200)
    // At most two run and sixteen wait.
    expect(refused.length).toBeGreaterThanOrEqual(40 - 18)
    expect(refused.length).toBeLessThan(40)
    for (const { status, text } of refused) {
      expect([status, text]).toEqual([503, expect.stringContaining('(TOO_MANY_SIMULTANEOUS')])
    }
    expect((await rig.runQuery({ query: 'select 1' })).text).toBe('1\n')
  })

  it('a query whose client has left is cancelled and frees its permit', async () => {
    const leaving = new AbortController()
    const { user, password, url } = rig.acme
    const endless = `${url}/?user=${user}&password=${password}&query=${encodeURIComponent(
      'select sum(sipHash64(number)) from numbers(1000000000)',
    )}`
    const request = fetch(endless, { signal: leaving.signal }).catch(String)
    const count = () => rig.asService("select count() from system.processes where user = 'analyst'")
    await until('the query runs', async () => (await count()) === '1')
    leaving.abort()
    await request
    await until('no query runs', async () => (await count()) === '0')
    expect((await rig.runQuery({ query: 'select 1' })).text).toBe('1\n')
  })
})

/** As the scorer writes: 500 events at a time, through every view that feeds other tables. */
async function timeInserts(
  prefix: string,
  count: number,
): Promise<{ medianMs: number; slowestMs: number }> {
  const times: number[] = []
  for (let n = 0; n < count; n++) {
    const startedMs = performance.now()
    await rig.asService(
      `insert into telemetry (tenant_id, device_id, session_id, event_id, received_at, body,
         detected_signals)
       select 'other', concat('o', toString(number)), toString(number),
         concat('${prefix}', '${n}-', toString(number)), now64(3), '{"signals":{}}', []
       from numbers(500)`,
    )
    times.push(Math.round(performance.now() - startedMs))
  }
  times.sort((a, b) => a - b)
  return { medianMs: times[count >> 1]!, slowestMs: times.at(-1)! }
}

describe('the console', () => {
  it('creates an analyst once, lists it without secrets, audits and removes it', async () => {
    const grafana = { tenantId: 'acme', name: 'grafana', actor: 'ann' }
    const made = await createAnalyst(rig.deps, grafana)
    expect(made).toMatchObject({
      url: rig.proxy.url,
      user: 'analyst.acme.grafana',
      database: 'analytics',
    })
    await expect(createAnalyst(rig.deps, grafana)).rejects.toMatchObject({ code: 'analyst_exists' })
    expect((await rig.runQuery({ query: 'select 1' }, made)).text).toBe('1\n')
    const listed = await listTenantAnalysts(rig.deps, 'acme')
    expect(listed.data.map(({ name }) => name)).toEqual(['grafana', 'own'])
    expect(JSON.stringify(listed)).not.toContain(made.password)
    await removeTenantAnalyst(rig.deps, grafana)
    expect((await rig.runQuery({ query: 'select 1' }, made)).status).toBe(403)
    await expect(removeTenantAnalyst(rig.deps, grafana)).rejects.toMatchObject({
      code: 'analyst_not_found',
    })
    const { rows } = await rig.postgres.query<{ action: string; actor: string }>(
      `select action, actor from audit_log where action like 'analyst.%' and actor = 'ann'
       order by audit_id`,
    )
    expect(rows.map(({ action }) => action)).toEqual(['analyst.created', 'analyst.removed'])
  })

  it('rejects analysts of a suspended tenant', async () => {
    await rig.postgres.query(`update tenants set status = 'suspended' where tenant_id = 'globex'`)
    expect((await rig.runQuery({ query: 'select 1' }, rig.globex)).status).toBe(403)
    await rig.postgres.query(`update tenants set status = 'active' where tenant_id = 'globex'`)
    expect((await rig.runQuery({ query: 'select 1' }, rig.globex)).status).toBe(200)
  })

  it('explains what to configure where there can be no analysts', async () => {
    const deps = { ...rig.deps, analysts: { ...rig.deps.analysts, url: null } }
    await expect(
      createAnalyst(deps, { tenantId: 'acme', name: 'none', actor: 'ann' }),
    ).rejects.toMatchObject({ code: 'analysts_not_possible' })
    expect((await listTenantAnalysts(deps, 'acme')).data.map(({ name }) => name)).toEqual(['own'])
  })
})

describe('a server with users', () => {
  const statements = [
    ...toAccessStatements({ database: 'device_intelligence', owner: 'default' }),
    toGuardStatement('device_intelligence', 'events'),
    ...toUserStatements({
      tenantId: 'acme',
      name: 'own',
      passwordSha256Hex: 'ab'.repeat(32),
      salt: 'c2FsdA',
    }),
    toRemovalStatement('acme', 'own'),
  ]

  it('gets statements that the engine’s own parser accepts', async () => {
    await expect(rig.asService('explain ast create user u host nowhere')).rejects.toThrow('Syntax')
    for (const statement of statements) {
      const parsed = await rig.asService(`explain ast ${statement}`).catch(String)
      expect([statement, parsed]).toEqual([statement, expect.not.stringContaining('Code:')])
    }
  })

  it('gets these statements', async () => {
    const text = statements.slice(0, -5).map((statement) => `${statement};\n`)
    await expect(`${header}${text.join('\n')}`).toMatchFileSnapshot(
      '../../../deploy/clickhouse/analysts.sql',
    )
  })

  it('has only settings in its profile that the engine knows', async () => {
    const known = new Set((await rig.asService('select name from system.settings')).split('\n'))
    const profile = statements.filter((one) => one.startsWith('alter settings profile'))
    const named = profile.flatMap((one) =>
      [...one.matchAll(/^ {2}(\w+)/gm)].map((match) => match[1]!),
    )
    expect(named.length).toBeGreaterThan(30)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })
})

const header = `-- What a ClickHouse that keeps users needs once, for analysts of any number of tenants. The
-- console runs it by itself before it makes the first (di analysts create), as the user that it
-- signs in as, here \`default\`, and points the views at the reader. Written from
-- shared/io/analytics/analyst-access-store.ts by a test; do not edit.

`
