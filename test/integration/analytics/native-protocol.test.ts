// Analysts over ClickHouse's native protocol, by real clients of it: the rights and limits of the
// HTTP proxy, and nothing of a client but its text, settings and parameters reaches the engine.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { splitBlocks } from '../../../deploy/local/clickhouse/native/native-blocks.ts'
import { newestRevision } from '../../../deploy/local/clickhouse/native/native-packets.ts'
import { toText, toVarint } from '../../../deploy/local/clickhouse/native/native-reader.ts'
import { attempts, tenantViews } from '../../support/analytics/analyst-attempts.ts'
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'
import {
  type NativeQuery,
  runByClient,
  runByDriver,
} from '../../support/analytics/native-client.ts'
import { until } from '../../support/process/until.ts'

let rig: AnalystsRig
beforeAll(async () => {
  rig = await createAnalystsRig()
})
afterAll(() => rig?.close())

/** Outcomes with the names of errors. */
async function run(queries: NativeQuery[], as = rig.acme, at = rig.proxy) {
  const outcomes = await runByDriver(at.native, as, queries)
  const named = outcomes.map(async ({ got, text }) => {
    const code = /^Code (\d+)$/.exec(got)?.[1]
    if (code === undefined) return { got, text }
    return { got: await rig.asService(`select errorCodeToName(${code})`), text }
  })
  return Promise.all(named)
}
const got = async (query: string, more: Omit<NativeQuery, 'query'> = {}) =>
  (await run([{ query, ...more }]))[0]!.got

const foreign = /globex-|alr_globex|of globex|root:x:/

describe('a native client', () => {
  it('reads the rows of its own tenant through every view', async () => {
    const toQuery = (view: string) => ({
      query: `select count() > 0, uniqExact(tenant_id), any(tenant_id) from ${view}`,
    })
    for (const analyst of [rig.acme, rig.globex]) {
      const outcomes = await run(tenantViews.map(toQuery), analyst)
      const tenant = analyst === rig.acme ? 'acme' : 'globex'
      const expected = tenantViews.map((view) => [view, `1\t1\t${tenant}`])
      expect(outcomes.map((one, at) => [tenantViews[at], one.got])).toEqual(expected)
    }
  })

  it('can be clickhouse-client', async () => {
    const asClient = (query: string, options?: string[]) =>
      runByClient(rig.proxy.native, rig.acme, query, options && { options })
    expect(await asClient('select count(), any(tenant_id) from events')).toBe('50\tacme\n')
    const many = await asClient('select number from numbers(300000)')
    expect([many.split('\n').length, many.endsWith('\n299999\n')]).toEqual([300_001, true])
    expect(await asClient("select file('/etc/passwd')")).toContain('Not enough privileges')
    expect(await asClient('select 1', ['--compression', '1'])).toContain('compression')
  })

  it('gets values of every type as over HTTP', async () => {
    const expressions = [
      ...['toUInt8(1)', 'toInt64(-5)', 'toUInt256(7)', '1.5', 'true', "toDate('2026-01-02')"],
      ...["toFixedString('ab', 3)", "'text'", "toDecimal64('1.5', 2)", "toDecimal256('7', 1)"],
      ...["toUUID('00000000-0000-0000-0000-000000000001')", "toIPv4('1.2.3.4')", 'NULL'],
      ...["CAST('a', 'Enum8(\\'a\\' = 1, \\'b,)\\' = 2)')", "toLowCardinality('low')"],
      ...['[1, 2, 3]', "[['a'], [], ['b', 'c']]", "(1, 'x', [2])", "map('k', [1, 2])"],
      ...["[toNullable('x'), NULL]"],
      ...["[toLowCardinality('low')]", 'emptyArrayString()', 'toIntervalDay(3)'],
    ]
    const query = `select ${expressions.join(', ')} from numbers(3)`
    const http = await rig.runQuery({ query: `select ${expressions.join(', ')} from numbers(3)` })
    expect([http.status, http.status === 200 ? '' : http.text]).toEqual([200, ''])
    const [native] = await run([{ query: `select count() from (${query})` }, { query }])
    expect(native!.got).toBe('3')
    const outcomes = await run(
      expressions.map((one) => ({ query: `select ${one} from numbers(3)` })),
    )
    const failed = outcomes.flatMap(({ got, text }, at) =>
      /^[A-Z_]{6,}$|Error$/.test(got) ? [[expressions[at], got, text.slice(0, 200)]] : [],
    )
    expect(failed).toEqual([])
    for (const { text } of outcomes) expect(text.split('\n')).toHaveLength(3)
    // The driver does not read such a name.
    const odd = "select CAST((1, 'y') as Tuple(a UInt8, `b, (c` String)) as t, t.1"
    expect(await runByClient(rig.proxy.native, rig.acme, odd)).toBe("(1,'y')\t1\n")
  })

  it('gets signals as text, and is asked for a type where there is none', async () => {
    const [whole, path, typed] = await run([
      { query: 'select toString(signals) from events limit 1' },
      { query: 'select signals.root.su_binary from events limit 1' },
      { query: 'select signals.root.su_binary from typed_events limit 1' },
    ])
    expect([whole!.got, typed!.got]).toEqual(['{}', 'None'])
    expect([path!.got, path!.text]).toEqual(['NOT_IMPLEMENTED', expect.stringContaining('Dynamic')])
  })

  it('gets every column of events: signals are in it as text', async () => {
    const params = {
      default_format: 'Native',
      client_protocol_version: String(newestRevision),
      output_format_native_write_json_as_string: '1',
    }
    const encoded = (query: string) =>
      fetch(`${rig.proxy.url}/?${new URLSearchParams({ ...params, query })}`, {
        headers: { 'x-clickhouse-user': rig.acme.user, 'x-clickhouse-key': rig.acme.password },
      }).then(async (answer) => Buffer.from(await answer.arrayBuffer()))
    for (const view of tenantViews) {
      const blocks = splitBlocks(await encoded(`select * from ${view}`), true)
      expect([view, blocks.length > 0]).toEqual([view, true])
      expect(Buffer.concat(blocks)).toEqual(await encoded(`select * from ${view}`))
    }
  })

  it('may set what an analyst may set, and nothing else', async () => {
    const settings = (name: string, value: string) => ({ settings: { [name]: value } })
    expect(await got('select 1', settings('max_execution_time', '20'))).toBe('1')
    const beyond = settings('max_execution_time', '3600')
    expect(await got('select 1', beyond)).toBe('SETTING_CONSTRAINT_VIOLATION')
    for (const name of ['readonly', 'max_memory_usage', 'stacktrace', 'log_comment']) {
      expect([name, await got('select 1', settings(name, '0'))]).toEqual([name, 'READONLY'])
    }
    expect(await got('set max_memory_usage = 0')).toBe('READONLY')
  })

  it('has no identity but that of its password, whatever it names', async () => {
    const query = `select currentUser(), (select count() from events where tenant_id != 'acme'),
      (select count() from events)`
    const named = { more: { query_id: 'analyst.globex.1' } }
    expect(await got(query, named)).toBe('analyst\t0\t50')
    const logins = [
      { user: rig.acme.user, password: 'x'.repeat(43) },
      { user: rig.globex.user, password: rig.acme.password },
      ...['analyst', 'default', 'analytics_reader', ''].map((user) => ({ user, password: '' })),
    ]
    for (const login of logins) {
      expect([login, await got('select 1', login)]).toEqual([login, 'AUTHENTICATION_FAILED'])
    }
  })

  it('cannot send data', async () => {
    const table = { name: 'mine', structure: [['x', 'Int32']], data: [{ x: 1 }] }
    const outcome = await got('select * from mine', { more: { external_tables: [table] } })
    expect(outcome).toBe('UNKNOWN_PACKET_FROM_CLIENT')
    const inserted = await got("insert into analytics.events (tenant_id) values ('acme')")
    expect(['ACCESS_DENIED', 'READONLY']).toContain(inserted)
  })

  it('gains nothing by any attempt on the HTTP proxy', async () => {
    const tried = Object.values(attempts)
      .flat()
      .filter(({ params, headers, path, method }) => !params && !headers && !path && !method)
    expect(tried.length).toBeGreaterThan(250)
    const outcomes = await run(tried)
    const others = tried.flatMap(({ what, gets }, at) => {
      const { got, text } = outcomes[at]!
      expect([what, foreign.test(text)]).toEqual([what, false])
      return got === gets ? [] : [[what, got]]
    })
    expect(others).toEqual([])
    const counts = 'select count(), uniqExact(tenant_id) from device_intelligence.telemetry'
    expect(await rig.asService(counts)).toBe('100\t2')
  })
})

describe('an answer over the native protocol', () => {
  it('of a million rows is whole, and of two million an error', async () => {
    const [whole, beyond, bytes] = await run([
      { query: 'select number from numbers(1000000)' },
      { query: 'select number from numbers(2000000)' },
      { query: 'select repeat(toString(number), 200) from numbers(100000)' },
    ])
    expect(whole!.text.endsWith('\n999999')).toBe(true)
    expect([beyond!.got, bytes!.got]).toEqual(Array(2).fill('TOO_MANY_ROWS_OR_BYTES'))
    const printed = await runByClient(
      rig.proxy.native,
      rig.acme,
      'select number from numbers(2000000)',
    )
    expect(printed).toContain('Limit for result exceeded')
  })

  it('that fails in its last row is an error', async () => {
    const late = 'select throwIf(number = 999998) from numbers(999999)'
    expect(await got(late)).toBe('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO')
  })

  it('that is an error has the text of the engine', async () => {
    const printed = await runByClient(rig.proxy.native, rig.acme, 'select 1 from no_such_table')
    expect(printed).toContain('UNKNOWN_TABLE')
    expect(printed).not.toContain('.. (')
  })
})

/** A query that for some seconds checks neither the clock nor a kill: one block of rows. */
const deaf = 'select sum(has(range(1000000), number + 2000000)) from numbers(500)'
const running = (like: string, seconds = 0) =>
  rig.asService(`select count() from system.processes where user = 'analyst'
    and query like '${like}' and query not like '%tokenizeQuery%' and elapsed >= ${seconds}`)

describe('the permit of a native query', () => {
  const limits = { perTenant: 1, total: 1, queuePerTenant: 16, waitMs: 60_000 }

  it('is one of those of HTTP, and lasts until the engine has ended the query', async () => {
    const proxy = await rig.openProxy({ limits })
    const leaving = new AbortController()
    const left = runByClient(proxy.native, rig.acme, deaf, { signal: leaving.signal }).catch(String)
    await until('it is in its block', async () => (await running('%has(range%', 0.3)) === '1')
    leaving.abort()
    await left
    const next = rig.runQuery({ query: "select 'next'" }, rig.acme, proxy)
    const other = await rig.runQuery({ query: "select 'other'" }, rig.globex, proxy)
    expect(other.text).toBe('other\n')
    expect(await running('%has(range%')).toBe('1')
    expect((await next).text).toBe('next\n')
    expect(await running('%has(range%')).toBe('0')
    await proxy.close()
  })

  it('ends at the time limit, even if the query ignores the clock', async () => {
    const proxy = await rig.openProxy({ limits, queryMaxMs: 500 })
    const [outcome] = await run([{ query: deaf }], rig.acme, proxy)
    expect(outcome!.got).toBe('TIMEOUT_EXCEEDED')
    expect((await rig.runQuery({ query: 'select 1' }, rig.globex, proxy)).text).toBe('1\n')
    await until('the engine is done', async () => (await running('%has(range%')) === '0')
    const [short] = await run([{ query: 'select 1' }], rig.acme, proxy)
    expect(short!.got).toBe('1')
    await proxy.close()
  })

  it('is released after a query of any outcome', async () => {
    const proxy = await rig.openProxy({ limits })
    const queries = ['select 1', 'select', "select file('x')", 'select throwIf(1)', 'select 2']
    const outcomes = await run(
      queries.map((query) => ({ query })),
      rig.acme,
      proxy,
    )
    expect(outcomes.map(({ got }) => got)).toEqual([
      ...['1', 'SYNTAX_ERROR', 'ACCESS_DENIED', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', '2'],
    ])
    await proxy.close()
  })
})

describe('the native port', () => {
  const exchange = async (...packets: Buffer[]) => {
    const [host, port] = rig.proxy.native.split(':')
    const socket = connect(Number(port), host).on('error', () => undefined)
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    for (const packet of packets) socket.write(packet)
    await Promise.race([once(socket, 'close'), new Promise((go) => setTimeout(go, 5_000))])
    const isClosed = socket.destroyed
    socket.destroy()
    return { text: Buffer.concat(chunks).toString('latin1'), isClosed }
  }
  const greeting = (revision = newestRevision) =>
    Buffer.concat([
      toVarint(0),
      toText('test'),
      ...[26, 7, revision].map(toVarint),
      ...['analytics', rig.acme.user, rig.acme.password].map(toText),
    ])

  it('closes connections that speak something else, and takes further ones', async () => {
    const odd = [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.alloc(64, 0xff),
      Buffer.concat([toVarint(0), toVarint(2 ** 40)]),
      greeting(54_000),
    ]
    for (const bytes of odd) expect((await exchange(bytes)).isClosed).toBe(true)
    expect(await got('select 1')).toBe('1')
  })

  it('is not opened by the engine itself, which one failed greeting would end', async () => {
    const port = rig.asService("select getServerPort('tcp_port')")
    await expect(port).rejects.toThrow('no port named tcp_port')
  })

  it('ends a query that its client cancels, and answers the next one', async () => {
    const [cancelled, next] = await run([
      { query: deaf, cancelAfterMs: 500 },
      { query: 'select 1' },
    ])
    expect([cancelled!.got, next!.got]).toEqual(['QUERY_WAS_CANCELLED', '1'])
  })

  it('refuses packets of servers and unknown ones', async () => {
    for (const kind of [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 99]) {
      const { text, isClosed } = await exchange(greeting(), toText(''), toVarint(kind))
      expect([kind, isClosed, text.includes('UNKNOWN_PACKET_FROM_CLIENT')]).toEqual([
        ...[kind, true, true],
      ])
    }
  })

  it('has at most sixteen connections of a tenant, so others keep theirs', async () => {
    const [host, port] = rig.proxy.native.split(':')
    const open = async () => {
      const socket = connect(Number(port), host).on('error', () => undefined)
      socket.write(greeting())
      const [answer] = (await once(socket, 'data')) as [Buffer]
      return { socket, isRefused: answer[0] === 2 }
    }
    const opened = []
    for (let n = 0; n < 17; n++) opened.push(await open())
    expect(opened.map(({ isRefused }) => isRefused)).toEqual([...Array(16).fill(false), true])
    expect((await run([{ query: 'select 1' }], rig.globex))[0]!.got).toBe('1')
    for (const { socket } of opened) socket.destroy()
    await until('there is room again', async () => (await got('select 1')) === '1')
  })
})
