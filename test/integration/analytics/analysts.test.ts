// Analysts on the real engine. As users that a ClickHouse server has for them they are kept to their
// tenant by the engine's own grants, row policies, settings and quotas. At the local stack's address
// they have the same views, which is a convenience and no wall. What makes them on a server are
// statements that the engine's parser accepts.

import { hash, randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedIndexes } from '#shared/core/analytics/analyst-access.ts'
import {
  toAccessStatements,
  toGuardStatement,
  toRemovalStatement,
  toUserStatements,
  workloadStatements,
} from '#shared/io/analytics/analyst-access-store.ts'
import {
  createAnalyst,
  listTenantAnalysts,
  removeTenantAnalyst,
  resetAnalystPassword,
} from '../../../services/console/analytics/manage-analysts.ts'
import {
  attempts,
  identityAttempts,
  tenantViews,
} from '../../support/analytics/analyst-attempts.ts'
import {
  type AnalystsRig,
  createAnalystsRig,
  toOutcome,
} from '../../support/analytics/analysts-rig.ts'
import { until } from '../../support/process/until.ts'

let rig: AnalystsRig
beforeAll(async () => {
  rig = await createAnalystsRig()
})
afterAll(() => rig?.close())

const foreign = /globex-|alr_globex|of globex|root:x:/
const onServer = async (query: string, params: Record<string, string> = {}) =>
  (await rig.runOnServer({ query, params })).text

describe('an analyst of a server', () => {
  it.each(Object.entries(attempts))('gains nothing by attempting %s', async (_, list) => {
    const wrong = []
    for (const one of list) {
      const { text } = await rig.runOnServer(one).catch(() => ({ text: 'Code: 0. (CUT_OFF)' }))
      if (toOutcome(text) !== one.gets) wrong.push([one.what, toOutcome(text), one.gets])
      expect(foreign.test(text)).toBe(false)
    }
    expect(wrong).toEqual([])
  })

  it('has changed nothing, including merges', async () => {
    const counts = 'select count(), uniqExact(tenant_id) from device_intelligence.telemetry'
    expect(await rig.asService(counts)).toBe('100\t2')
    await rig.asService('optimize table device_intelligence.telemetry final')
  })

  it('reads its own rows through every view, each in its own database', async () => {
    for (const view of tenantViews) {
      const query = `select count() > 0, uniqExact(tenant_id), any(tenant_id) from ${view}`
      for (const tenant of ['acme', 'globex'] as const) {
        const analyst = `analyst.${tenant}.own` as const
        const own = `1\t1\t${tenant}\n`
        expect([view, (await rig.runOnServer({ query }, analyst)).text]).toEqual([view, own])
        const { text } = await rig.runQuery({ query }, rig[tenant])
        expect([view, text]).toEqual([view, own])
      }
      expect(await rig.asService(`select uniqExact(tenant_id) from analytics.${view}`)).toBe('2')
    }
  })

  it('can query every existing view', async () => {
    const { text } = await rig.runOnServer({
      query: `select name from system.tables
              where database = 'analytics' and name != 'user_devices_as_of'`,
    })
    const views = text.trim().split('\n')
    expect(views.length).toBeGreaterThanOrEqual(13)
    for (const view of views) {
      const { status, text } = await rig.runOnServer({
        query: `select * from ${view} limit 1 format Null`,
      })
      expect([view, status, text]).toEqual([view, 200, ''])
      const columns = await rig.runOnServer({
        query: `select arrayStringConcat(groupArray(name), ', ') from system.columns
                where table = '${view}' format TSVRaw`,
      })
      const named = await rig.runOnServer({
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
      const { status } = await rig.runOnServer({ query: `select * from system.${name} limit 1` })
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
      'parts',
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
    expect((await rig.runOnServer({ query, params: { param_n: '5' } })).text).toBe('10\t50\t10\n')
  })

  it('learns nothing of another tenant’s users from what the engine reads', async () => {
    // One part and one block of rows, which both tenants share.
    for (const table of ['telemetry', 'user_devices', 'devices']) {
      await rig.asService(`optimize table device_intelligence.${table} final`)
    }
    for (const view of ['events', 'typed_events', 'users', 'user_devices']) {
      const reads = new Set<string>()
      for (const user of ['globex-u1', 'globex-u4', 'globex-u99', 'nobody']) {
        const query = `select * from ${view} where user_id = '${user}'`
        const forced = `select * from (${query} settings ignore_data_skipping_indices = 'none')`
        const { headers } = await rig.runOnServer({ query: `${query} format Null` })
        const summary = JSON.parse(String(headers['x-clickhouse-summary']))
        reads.add(summary.read_rows + (await onServer(`explain estimate ${query}`)))
        reads.add(summary.read_rows + (await onServer(`explain estimate ${forced}`)))
      }
      expect([view, reads.size]).toEqual([view, 1])
    }
  })

  it('reads through views that know every index of ids', async () => {
    const found = await rig.asService(`select name from system.data_skipping_indices
      where database = 'device_intelligence' and type = 'bloom_filter' order by name`)
    const others = found.split('\n').filter((name) => !sharedIndexes.some((one) => one === name))
    expect(others).toEqual([])
  })

  it('explains nothing within a SELECT', async () => {
    for (const explain of ['explain estimate select * from events', 'explain select 1']) {
      expect(toOutcome(await onServer(`select * from (${explain})`))).toBe('ACCESS_DENIED')
    }
  })

  const tools: Record<string, string>[] = [
    { max_result_rows: '2000', result_overflow_mode: 'break' },
    { output_format_binary_write_json_as_string: '1' },
    { max_execution_time: '60' },
    { log_comment: 'a dashboard', max_threads: '8' },
    { role: 'analyst' },
    { cancel_http_readonly_queries_on_client_close: '1' },
    { wait_end_of_query: '1', send_progress_in_http_headers: '1', session_id: 'a', query_id: 'b' },
  ]
  it.each(tools)('may use a tool that sends %o', async (params) => {
    for (const run of [rig.runOnServer, rig.runQuery]) {
      // The engine may not have ended a query that was answered.
      const ids = params.query_id === undefined ? {} : { query_id: randomUUID() }
      const query = 'select count() from analytics.events'
      const { status, text } = await run({ query, params: { ...params, ...ids } })
      expect([status, text]).toEqual([200, '50\n'])
    }
  })

  it('has its views in information_schema, with their columns', async () => {
    const tables = "select count() from information_schema.tables where table_schema = 'analytics'"
    expect(Number(await onServer(tables))).toBeGreaterThan(13)
    const upper = tables.replace('information_schema.tables', '"INFORMATION_SCHEMA"."TABLES"')
    expect(await onServer(upper)).toBe(await onServer(tables))
    const columns = `select column_name from information_schema.columns
      where table_name = 'events' order by ordinal_position limit 1`
    expect(await onServer(columns)).toBe('tenant_id\n')
  })
})

const endless = 'select sum(sipHash64(number)) from numbers(900000000)'

describe('the limits of an analyst of a server', () => {
  it('end a query that looks at the clock, with an error', async () => {
    expect(toOutcome(await onServer(endless, { max_execution_time: '1' }))).toBe('TIMEOUT_EXCEEDED')
  })

  it('bound the queries at once', async () => {
    const stop = new AbortController()
    const running = Array.from({ length: 5 }, () =>
      rig.runOnServer({ query: endless, signal: stop.signal }).then(
        ({ text }) => toOutcome(text),
        () => 'CUT_OFF',
      ),
    )
    expect(await Promise.race(running)).toBe('TOO_MANY_SIMULTANEOUS_QUERIES')
    stop.abort()
    await Promise.all(running)
  })

  it('put its threads in the workload of analysts, where the server has one', async () => {
    for (const statement of workloadStatements) await rig.asService(statement)
    expect(await onServer('select sum(number) from numbers(1000000)')).toBe('499999500000\n')
    const served = `select sum(dequeued_requests) > 0 from system.scheduler
      where resource = 'cpu' and path like '%/analysts%'`
    expect(await rig.asService(served)).toBe('1')
    for (const one of ['workload analysts', 'workload `all`', 'resource cpu']) {
      await rig.asService(`drop ${one}`)
    }
  })

  it('count a function that nothing ends, until it is done', async () => {
    const leaving = new AbortController()
    const deaf = "select countMatches(repeat('a', 45000), 'a.*b|a')"
    const left = rig.runOnServer({ query: deaf, signal: leaving.signal }).catch(String)
    const running = () =>
      rig.asService("select count() from system.processes where query like 'select countMatches%'")
    await until('it runs', async () => (await running()) === '1')
    leaving.abort()
    await left
    await rig.asService("kill query where query like 'select countMatches%' async")
    const stop = new AbortController()
    const others = Array.from({ length: 4 }, () =>
      rig.runOnServer({ query: endless, signal: stop.signal }).then(
        ({ text }) => toOutcome(text),
        () => 'CUT_OFF',
      ),
    )
    expect(await Promise.race(others)).toBe('TOO_MANY_SIMULTANEOUS_QUERIES')
    expect(await running()).toBe('1')
    stop.abort()
    await Promise.all(others)
    await until('it is done', async () => (await running()) === '0')
  })

  it('end with the quota of a minute', async () => {
    const metered = async () =>
      toOutcome((await rig.runOnServer({ query: 'select 1 from numbers(1)' }, 'metered')).text)
    let answered = 0
    while (answered <= 1_200 && (await metered()) === '1') answered++
    // A minute can end meanwhile.
    expect([600, 1_200]).toContain(answered - (answered % 600))
    expect(await metered()).toBe('QUOTA_EXCEEDED')
    expect(await onServer('select 1')).toBe('1\n')
  })
})

describe('the local stack’s address for analysts', () => {
  it('signs in nobody else, and no header or parameter makes another of an analyst', async () => {
    const wrong = []
    for (const one of identityAttempts) {
      const { text } = await rig.runQuery(one)
      if (toOutcome(text) !== one.gets) wrong.push([one.what, toOutcome(text), one.gets])
    }
    expect(wrong).toEqual([])
  })

  it('is no wall, as its warning says: the engine’s function `file` needs no grant', async () => {
    const query = "select b from values('a String, b String ALIAS file(a)', '/etc/passwd')"
    expect((await rig.runQuery({ query })).text).toContain('root:x:')
    expect(rig.acme.warning).toContain('no wall')
  })

  it('serves the official client as a ClickHouse does', async () => {
    const { user: username, password, url } = rig.acme
    const client = createClient({
      url,
      username,
      password,
      compression: { request: true, response: true },
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

  it('accepts a query by GET, by POST and by both, and credentials in three ways', async () => {
    const { user, password } = rig.acme
    const get = { method: 'GET', query: '', params: { query: 'select 1', default_format: 'CSV' } }
    expect((await rig.runQuery(get)).text).toBe('1\n')
    expect((await rig.runQuery({ query: '+ 1', params: { query: 'select 1' } })).text).toBe('2\n')
    const own = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password }
    expect((await rig.runQuery({ query: 'select 1', user: 'x', headers: own })).text).toBe('1\n')
    const reply = await fetch(`${rig.front.url}/?user=${user}&password=${password}&query=select+1`)
    expect(await reply.text()).toBe('1\n')
    const json = { 'X-ClickHouse-Format': 'JSONEachRow' }
    expect((await rig.runQuery({ query: 'select 1 as n', headers: json })).text).toBe('{"n":1}\n')
    expect(await (await fetch(`${rig.front.url}/ping`)).text()).toBe('Ok.\n')
    expect((await fetch(`${rig.front.url}/play`)).status).toBe(404)
  })

  it('stays open to an analyst beside many silent connections', async () => {
    const { port } = new URL(rig.front.url)
    const silent: Socket[] = []
    for (let n = 0; n < 1_100; n++) {
      silent.push(connect(Number(port), '127.0.0.1').on('error', () => undefined))
    }
    await until('many are open', () => silent.filter((one) => !one.connecting).length > 1_000)
    expect((await rig.runQuery({ query: 'select 1' })).text).toBe('1\n')
    for (const socket of silent) socket.destroy()
  })

  it('counts the requests that do not reach the engine', async () => {
    const metric = rig.metrics.registry.getSingleMetric('di_analyst_queries_failed_total')!
    const read = async () =>
      (await metric.get()).values.find((one) => one.labels.reason === 'AUTHENTICATION_FAILED')!
    const before = (await read()).value
    await rig.runQuery({ query: 'select 1', password: 'wrong' })
    await rig.runQuery({ query: 'select no_such_column from events' })
    expect((await read()).value).toBe(before + 1)
  })
})

/** The heaviest allowed query: every column of every event, in one thread, for up to 30 s. */
const heaviest = `select device_id, uniqExact(event_id), max(length(body)), groupUniqArray(platform)
  from events group by device_id order by 2 desc limit 10 format Null`

describe('under the load of analysts', () => {
  const bulkRows = 300_000

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

  it('the scorer’s inserts continue, beside queries that began before them', async () => {
    let stopped = false
    let begun = 0
    const running = new Set<number>()
    const analyst = async (as: typeof rig.acme) => {
      while (!stopped) {
        const query = ++begun
        running.add(query)
        const { text } = await rig.runQuery({ query: heaviest }, as)
        running.delete(query)
        // Its time limit is that of the engine.
        expect(['', 'TIMEOUT_EXCEEDED']).toContain(toOutcome(text))
      }
    }
    const analysts = [rig.acme, rig.acme, rig.globex, rig.globex].map(analyst)
    let overtaken = 0
    await until('inserts end before queries that began before them', async () => {
      const before = [...running]
      await insertAsScorer()
      overtaken += before.filter((query) => running.has(query)).length
      return overtaken >= 10
    })
    stopped = true
    await Promise.all(analysts)
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

let inserts = 0

/** As the scorer writes: 500 events at a time, through every view that feeds other tables. */
const insertAsScorer = () =>
  rig.asService(
    `insert into telemetry (tenant_id, device_id, session_id, event_id, received_at, body,
       detected_signals)
     select 'other', concat('o', toString(number)), toString(number),
       concat('${++inserts}-', toString(number)), now64(3), '{"signals":{}}', []
     from numbers(500)`,
  )

describe('the console', () => {
  it('creates an analyst once, lists it without secrets, resets and removes it', async () => {
    const grafana = { tenantId: 'acme', name: 'grafana', actor: 'ann' }
    const made = await createAnalyst(rig.deps, grafana)
    expect(made).toMatchObject({
      url: rig.front.url,
      user: 'analyst.acme.grafana',
      database: 'analytics',
      warning: expect.stringContaining('no wall'),
    })
    await expect(createAnalyst(rig.deps, grafana)).rejects.toMatchObject({ code: 'analyst_exists' })
    expect((await rig.runQuery({ query: 'select 1' }, made)).text).toBe('1\n')
    const listed = await listTenantAnalysts(rig.deps, 'acme')
    expect(listed.data.map(({ name }) => name)).toEqual(['grafana', 'own'])
    expect(JSON.stringify(listed)).not.toContain(made.password)
    const reset = await resetAnalystPassword(rig.deps, grafana)
    expect({ ...reset, password: '' }).toEqual({ ...made, password: '' })
    expect((await rig.runQuery({ query: 'select 1' }, made)).status).toBe(403)
    expect((await rig.runQuery({ query: 'select 1' }, reset)).text).toBe('1\n')
    await removeTenantAnalyst(rig.deps, grafana)
    expect((await rig.runQuery({ query: 'select 1' }, reset)).status).toBe(403)
    for (const change of [removeTenantAnalyst, resetAnalystPassword]) {
      await expect(change(rig.deps, grafana)).rejects.toMatchObject({ code: 'analyst_not_found' })
    }
    const { rows } = await rig.postgres.query<{ action: string; actor: string }>(
      `select action, actor from audit_log where action like 'analyst.%' and actor = 'ann'
       order by audit_id`,
    )
    expect(rows.map(({ action }) => action)).toEqual([
      'analyst.created',
      'analyst.password_reset',
      'analyst.removed',
    ])
  })

  it('signs in an analyst that an earlier version of the local stack stored', async () => {
    const passwordHash = hash('sha256', 'an earlier password', 'buffer')
    await rig.postgres.query(
      `insert into analysts (tenant_id, name, password_hash, created_by)
       values ('acme', 'earlier', $1, 'admin')`,
      [passwordHash],
    )
    const earlier = { ...rig.acme, user: 'analyst.acme.earlier', password: 'an earlier password' }
    const { text } = await rig.runQuery({ query: 'select count() from events' }, earlier)
    expect(text).toBe('50\n')
    await removeTenantAnalyst(rig.deps, { tenantId: 'acme', name: 'earlier', actor: 'admin' })
  })

  it('rejects analysts of a suspended tenant', async () => {
    await rig.postgres.query(`update tenants set status = 'suspended' where tenant_id = 'globex'`)
    expect((await rig.runQuery({ query: 'select 1' }, rig.globex)).status).toBe(403)
    await rig.postgres.query(`update tenants set status = 'active' where tenant_id = 'globex'`)
    expect((await rig.runQuery({ query: 'select 1' }, rig.globex)).status).toBe(200)
  })

  it('explains what to configure on a server that keeps no users', async () => {
    const deps = { ...rig.deps, analysts: { ...rig.deps.analysts, isEmbedded: false } }
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
    for (const statement of [...statements, ...workloadStatements]) {
      const parsed = await rig.asService(`explain ast ${statement}`).catch(String)
      expect([statement, parsed]).toEqual([statement, expect.not.stringContaining('Code:')])
    }
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
