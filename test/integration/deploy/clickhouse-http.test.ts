// The embedded ClickHouse answers as ClickHouse does: to curl, to @clickhouse/client, to
// dashboards. Statuses, codes, headers and content types are those that ClickHouse documents.
import { randomUUID } from 'node:crypto'
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import { ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type ClickhouseRequest, callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

let server: TestClickhouse
let client: ReturnType<typeof createClient>
const call = (request: ClickhouseRequest) => callClickhouse(server.url, request)
const runQuery = async (sql: string, params: Record<string, string> = {}) => {
  const reply = await call({ body: sql, params })
  expect(reply.text, sql).not.toMatch(/^Code: /)
  return reply.text.trimEnd()
}

beforeAll(async () => {
  server = await startClickhouse()
  client = createClient({ url: server.url, log: { level: ClickHouseLogLevel.OFF } })
})
afterAll(async () => {
  await client.close()
  await server.stop()
})

describe('health', () => {
  test.each(['/ping', '/', '/replicas_status'])('GET and HEAD %s return ok', async (path) => {
    expect(await call({ path })).toMatchObject({ status: 200, text: 'Ok.\n' })
    expect(await call({ path, method: 'HEAD' })).toMatchObject({ status: 200, text: '' })
  })

  test('@clickhouse/client finds it alive and reads its version', async () => {
    expect(await client.ping()).toEqual({ success: true })
    expect(await runQuery('SELECT version()')).toMatch(/^\d+\.\d+\.\d+\.\d+$/)
    expect(await runQuery('SELECT timezone()')).toBe('UTC')
  })
})

describe('the place of the query', () => {
  test('may be the URL, the body, or both, with the body as the continuation', async () => {
    expect((await call({ params: { query: 'SELECT 40 + 2' } })).text).toBe('42\n')
    expect((await call({ body: 'SELECT 40 + 2' })).text).toBe('42\n')
    expect((await call({ params: { query: 'SELECT 40' }, body: '+ 2' })).text).toBe('42\n')
  })

  test('in a GET allows only reads', async () => {
    const ddl = 'CREATE TABLE by_get (a Int8) ENGINE = Memory'
    const refused = await call({ params: { query: ddl } })
    expect(refused.headers['x-clickhouse-exception-code']).toBe('164')
    expect((await call({ params: { query: ddl }, body: '' })).status).toBe(200)
    const insert = await call({ params: { query: 'INSERT INTO by_get VALUES (1)' } })
    expect(insert.text).toMatch(/^Code: 164\. DB::Exception: /)
    expect(await runQuery('SELECT count() FROM by_get')).toBe('0')
  })

  test('does not matter for the database, which comes from a parameter or a header', async () => {
    expect((await call({ params: { database: 'later' }, body: 'SELECT 1' })).status).toBe(404)
    await runQuery('CREATE DATABASE later')
    await runQuery('CREATE TABLE here (a Int8) ENGINE = MergeTree ORDER BY a', {
      database: 'later',
    })
    const headers = { 'X-ClickHouse-Database': 'later' }
    const seen = await call({ headers, body: 'SELECT currentDatabase(), count() FROM here' })
    expect(seen.text).toBe('later\t0\n')
    expect(await runQuery('SELECT currentDatabase()')).toBe('default')
  })
})

describe('formats', () => {
  test.each([
    ['TabSeparated', 'text/tab-separated-values; charset=UTF-8', '1\ta\n'],
    ['CSV', 'text/csv; charset=UTF-8; header=absent', '1,"a"\n'],
    ['CSVWithNames', 'text/csv; charset=UTF-8; header=present', '"n","s"\n1,"a"\n'],
    ['JSONEachRow', 'application/x-ndjson; charset=UTF-8', '{"n":1,"s":"a"}\n'],
    ['JSON', 'application/json; charset=UTF-8', '"rows": 1'],
    ['Pretty', 'text/plain; charset=UTF-8', '━'],
    ['RowBinary', 'application/octet-stream', '\u0001\u0001a'],
  ])('%s has its content type', async (format, type, text) => {
    const body = "SELECT 1 AS n, 'a' AS s"
    for (const answer of [
      await call({ body: `${body} FORMAT ${format}`, params: { default_format: 'XML' } }),
      await call({ body, params: { default_format: format } }),
      await call({ body, headers: { 'X-ClickHouse-Format': format } }),
    ]) {
      expect(answer.headers['content-type']).toBe(type)
      expect(answer.text).toContain(text)
    }
  })

  test('tab separated is the default', async () => {
    const { text, headers } = await call({ body: "SELECT 1, 'a\tb'" })
    expect(text).toBe('1\ta\\tb\n')
    expect(headers['x-clickhouse-format']).toMatch(/^(TSV|TabSeparated)$/)
  })
})

describe('parameters', () => {
  test('any string arrives as it was sent, alone, in an array, or as an identifier', async () => {
    const query = `SELECT {text:String} AS text, {list:Array(String)} AS list,
      {none:Nullable(String)} AS none, lower(hex({text:String})) AS bytes, 7 AS {name:Identifier}`
    await fc.assert(
      fc.asyncProperty(nasty, fc.array(nasty, { maxLength: 3 }), async (text, list) => {
        const query_params = { text, list, none: null, name: `n ${list.length}` }
        const rows = await client.query({ query, query_params, format: 'JSONEachRow' })
        const bytes = Buffer.from(text).toString('hex')
        const expected = { text, list, none: null, bytes, [`n ${list.length}`]: 7 }
        expect(await rows.json()).toEqual([expected])
      }),
      { numRuns: 100 },
    )
  })

  test('numbers keep all their digits and times their milliseconds', async () => {
    const params = { param_n: '18446744073709551615', param_t: '2026-11-20 10:11:12.345' }
    const text = await runQuery(
      "SELECT {n:UInt64}, {t:DateTime64(3, 'UTC')}, {n:UInt64} % 10",
      params,
    )
    expect(text).toBe('18446744073709551615\t2026-11-20 10:11:12.345\t5')
  })

  test('a value is never SQL', async () => {
    const evil = "1; DROP TABLE x -- ' OR 1=1"
    expect(await runQuery('SELECT {v:String} FORMAT TSVRaw', { param_v: evil })).toBe(evil)
    const number = await call({ body: 'SELECT {v:UInt8}', params: { param_v: '1 OR 1' } })
    expect(number.headers['x-clickhouse-exception-code']).toBe('457')
    const absent = await call({ body: 'SELECT {v:UInt8}' })
    expect(absent.headers['x-clickhouse-exception-code']).toBe('456')
  })

  // Characters with a special meaning in some layer, and any others.
  const nasty = fc
    .array(fc.oneof(fc.constantFrom(...'\'"`\\\t\n\r\b\0\u007f%+&=?{}();-–é😀N'), fc.string()), {
      maxLength: 12,
    })
    .map((parts) => parts.join(''))
})

describe('settings', () => {
  test('apply to their own query and to no concurrent one', async () => {
    const replies = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const own = i % 3 === 0 ? '65409' : String(1000 + i)
        const text = await runQuery(
          "SELECT getSetting('max_block_size'), sleep(0.002), getSetting('max_block_size')",
          i % 3 === 0 ? {} : { max_block_size: own },
        )
        return [text, `${own}\t0\t${own}`]
      }),
    )
    for (const [text, expected] of replies) expect(text).toBe(expected)
  })

  test('that are unknown or have a bad value are an error', async () => {
    const unknown = await call({ body: 'SELECT 1', params: { no_such_setting: '1' } })
    expect(unknown).toMatchObject({ status: 404 })
    expect(unknown.text).toMatch(/^Code: 115\. .*\(UNKNOWN_SETTING\) \(version \d/s)
    const bad = await call({ body: 'SELECT 1', params: { max_result_rows: 'many' } })
    expect(bad.status).toBe(400)
  })

  test('enforce limits of rows and time', async () => {
    const rows = await call({
      body: 'SELECT number FROM numbers(100)',
      params: { max_result_rows: '5', result_overflow_mode: 'throw' },
    })
    expect(rows).toMatchObject({ status: 500 })
    expect(rows.headers['x-clickhouse-exception-code']).toBe('396')
    const slow = await call({
      body: 'SELECT sleepEachRow(0.2) FROM numbers(50) SETTINGS max_block_size = 1',
      params: { max_execution_time: '0.5', wait_end_of_query: '1' },
    })
    expect(slow.headers['x-clickhouse-exception-code']).toBe('159')
  })

  test('stay in a session, as do its temporary tables, and nowhere else', async () => {
    const session = { session_id: randomUUID(), session_timeout: '60' }
    await runQuery('SET max_block_size = 4321', session)
    await runQuery('CREATE TEMPORARY TABLE mine (a Int8)', session)
    await runQuery('INSERT INTO mine VALUES (7)', session)
    expect(await runQuery("SELECT a, getSetting('max_block_size') FROM mine", session)).toBe(
      '7\t4321',
    )
    expect((await call({ body: 'SELECT a FROM mine' })).status).toBe(404)
    const gone = { session_id: randomUUID(), session_check: '1' }
    expect((await call({ body: 'SELECT 1', params: gone })).text).toMatch(/^Code: 372\./)
  })
})

describe('errors', () => {
  test.each([
    ['SELECT [1', 400, '62', 'SYNTAX_ERROR'],
    ['SELECT 1 FROM missing', 404, '60', 'UNKNOWN_TABLE'],
    ['SELECT missing', 404, '47', 'UNKNOWN_IDENTIFIER'],
    ['SELECT 1 FROM missing.t', 404, '81', 'UNKNOWN_DATABASE'],
    ['SELECT nosuchfunction()', 404, '46', 'UNKNOWN_FUNCTION'],
    ['SELECT throwIf(1)', 500, '395', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'],
  ])('%s answers %i with its code and name', async (body, status, code, type) => {
    const reply = await call({ body })
    expect(reply.status).toBe(status)
    expect(reply.headers['x-clickhouse-exception-code']).toBe(code)
    expect(reply.text).toMatch(new RegExp(`^Code: ${code}\\. DB::Exception: .*\\(${type}\\)`, 's'))
    const thrown = await client.query({ query: body }).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(ClickHouseError)
    expect(thrown).toMatchObject({ code, type })
  })
})

describe('authentication', () => {
  const [user, key] = ['X-ClickHouse-User', 'X-ClickHouse-Key']
  const bare = (headers: Record<string, string>) => {
    const { host } = new URL(server.url)
    return callClickhouse(`http://${host}`, { headers, params: { query: 'SELECT 1' } })
  }

  test('accepts the password by Basic, by headers and by parameters', async () => {
    const basic = `Basic ${Buffer.from('default:test').toString('base64')}`
    expect((await bare({ Authorization: basic })).text).toBe('1\n')
    expect((await bare({ [user!]: 'default', [key!]: 'test' })).text).toBe('1\n')
    const params = { query: 'SELECT 1', user: 'default', password: 'test' }
    const { host } = new URL(server.url)
    expect((await callClickhouse(`http://${host}`, { params })).text).toBe('1\n')
  })

  test('rejects a missing, empty, wrong or foreign password', async () => {
    for (const headers of [
      {},
      { [user!]: 'default' },
      { [user!]: 'default', [key!]: '' },
      { [user!]: 'default', [key!]: 'tes' },
      { Authorization: `Basic ${Buffer.from('default:').toString('base64')}` },
      { [user!]: 'somebody', [key!]: 'test' },
    ]) {
      const reply = await bare(headers)
      expect([401, 403]).toContain(reply.status)
      expect(reply.text).toMatch(/^Code: (194|516)\. DB::Exception: .*Authentication failed/)
    }
  })
})

describe('without a password', () => {
  test('accepts every client on this machine as user default', async () => {
    const open = await startClickhouse({ password: '' })
    onTestFinished(() => open.stop())
    expect((await callClickhouse(open.url, { body: 'SELECT currentUser()' })).text).toBe(
      'default\n',
    )
    const headers = { 'X-ClickHouse-User': 'default', 'X-ClickHouse-Key': 'some' }
    expect((await callClickhouse(open.url, { body: 'SELECT 1', headers })).status).toBe(401)
  })
})

describe('headers', () => {
  test('the query id is the given one or a fresh UUID', async () => {
    const given = randomUUID()
    const reply = await call({ body: 'SELECT queryID()', params: { query_id: given } })
    expect(reply.headers['x-clickhouse-query-id']).toBe(given)
    expect(reply.text).toBe(`${given}\n`)
    const fresh = (await call({ body: 'SELECT 1' })).headers['x-clickhouse-query-id']
    expect(fresh).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })

  test('the summary counts the rows read and written', async () => {
    const body = 'SELECT sum(number) FROM numbers(12345)'
    const read = await call({ body, params: { wait_end_of_query: '1' } })
    expect(summaryOf(read.headers)).toMatchObject({ read_rows: '12345', result_rows: '1' })
    await runQuery('CREATE TABLE counted (a UInt32) ENGINE = MergeTree ORDER BY a')
    const query = 'INSERT INTO counted FORMAT JSONEachRow'
    const written = await call({ params: { query, async_insert: '0' }, body: '{"a":1}\n{"a":2}' })
    expect(summaryOf(written.headers)).toMatchObject({ written_rows: '2' })
    expect(read.headers).toMatchObject({
      'x-clickhouse-timezone': 'UTC',
      'x-clickhouse-server-display-name': expect.stringMatching(/./),
    })
  })

  test('grant nothing to other origins unless requested', async () => {
    const headers = { Origin: 'http://elsewhere.example' }
    const reply = await call({ body: 'SELECT 1', headers })
    expect(reply.headers['access-control-allow-origin']).toBeUndefined()
  })

  const summaryOf = (headers: Record<string, unknown>) =>
    JSON.parse(String(headers['x-clickhouse-summary'])) as Record<string, string>
})

describe('compression of answers', () => {
  const body = 'SELECT number FROM numbers(1000)'
  test.each([
    ['gzip', gunzipSync],
    ['deflate', inflateSync],
    ['br', brotliDecompressSync],
    ['zstd', zstdDecompressSync],
  ])('uses %s when it is accepted and switched on', async (encoding, decompress) => {
    const headers = { 'Accept-Encoding': encoding }
    const plain = await call({ body })
    const packed = await call({ body, headers, params: { enable_http_compression: '1' } })
    expect(packed.headers['content-encoding']).toBe(encoding)
    expect(decompress(packed.body)).toEqual(plain.body)
    const off = await call({ body, headers, params: { enable_http_compression: '0' } })
    expect(off.headers['content-encoding']).toBeUndefined()
    expect(off.body).toEqual(plain.body)
  })
})

describe('the first queries of dashboards and drivers', () => {
  test.each([
    'SELECT version(), timezone()',
    "SELECT name, value, readonly FROM system.settings WHERE name LIKE 'max_%' LIMIT 5",
    'SELECT name FROM system.databases',
    "SELECT name, type FROM system.columns WHERE database = 'system' AND table = 'tables'",
    'SELECT database, name, engine FROM system.tables LIMIT 5',
    'SHOW DATABASES',
    'SHOW PROCESSLIST',
    'EXPLAIN SELECT 1',
  ])('%s', async (sql) => {
    const params = { default_format: 'JSONCompact' }
    const { data } = JSON.parse(await runQuery(sql, params)) as { data: unknown[] }
    expect(data.length).toBeGreaterThan(0)
  })

  test('a native block over HTTP, as Go and Python drivers read it', async () => {
    const params = {
      default_format: 'Native',
      client_protocol_version: '54468',
      database: 'system',
    }
    const { body, status } = await call({ body: 'SELECT toUInt8(7) AS seven', params })
    expect(status).toBe(200)
    expect(body.includes('seven')).toBe(true)
  })
})
