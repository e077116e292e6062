// Inserts into the embedded ClickHouse and its behaviour under load: every insert format, bodies
// that look like SQL, compression, large bodies and answers, many concurrent requests, merges.
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { createClient } from '@clickhouse/client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../support/process/until.ts'
import { type ClickhouseRequest, callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

let server: TestClickhouse
const call = (request: ClickhouseRequest) => callClickhouse(server.url, request)
const runQuery = async (sql: string, params: Record<string, string> = {}) => {
  const reply = await call({ body: sql, params })
  expect(reply.text, sql).not.toMatch(/^Code: /)
  return reply.text.trimEnd()
}
const insert = (query: string, body: string | Buffer, params: Record<string, string> = {}) =>
  call({ params: { query, async_insert: '0', ...params }, body })

beforeAll(async () => {
  server = await startClickhouse()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await runQuery('DROP TABLE IF EXISTS t SYNC')
  await runQuery(
    'CREATE TABLE t (n UInt32, s String, x UInt8 DEFAULT 9) ENGINE = MergeTree ORDER BY n',
  )
})

describe('insert formats', () => {
  test.each([
    ['JSONEachRow', '{"n":1,"s":"a"}\n{"s":"b;","n":2}\n'],
    ['JSONEachRow', '[{"n":1,"s":"a"},{"n":2,"s":"b;"}]'],
    ['JSONCompactEachRow', '[1,"a",9]\n[2,"b;",9]\n'],
    ['JSONCompactEachRowWithNames', '["s","n"]\n["a",1]\n["b;",2]\n'],
    ['JSONCompactEachRowWithNamesAndTypes', '["n","s"]\n["UInt32","String"]\n[1,"a"]\n[2,"b;"]'],
    ['JSONObjectEachRow', '{"r1":{"n":1,"s":"a"},"r2":{"n":2,"s":"b;"}}'],
    ['JSON', '{"meta":[{"name":"n","type":"UInt32"}],"data":[{"n":1,"s":"a"},{"n":2,"s":"b;"}]}'],
    ['CSV', '1,"a",9\n2,b;,9\n'],
    ['CSVWithNames', 's,n\na,1\n"b;",2\n'],
    ['TabSeparated', '1\ta\t9\n2\tb;\t9\n'],
    ['TSV', '1\ta\t9\n2\tb;\t9'],
    ['TabSeparatedWithNames', 's\tn\na\t1\nb;\t2\n'],
    ['Values', "(1, 'a', 9), (2, 'b;', DEFAULT)"],
    ['RowBinary', Buffer.from('01000000016109' + '0200000002623b09', 'hex')],
  ])('%s', async (format, body) => {
    expect(await insert(`INSERT INTO t FORMAT ${format}`, body)).toMatchObject({ status: 200 })
    expect(await runQuery('SELECT * FROM t ORDER BY n')).toBe('1\ta\t9\n2\tb;\t9')
  })

  test('a native block read from the server can be inserted again', async () => {
    const select = "SELECT toUInt32(number) AS n, 'a' AS s FROM numbers(3) FORMAT Native"
    const block = (await call({ body: select })).body
    expect((await insert('INSERT INTO t (n, s) FORMAT Native', block)).status).toBe(200)
    expect(await runQuery('SELECT sum(n), sum(x) FROM t')).toBe('3\t27')
  })

  test('the statement and its rows may both be in the body', async () => {
    await runQuery("INSERT INTO t (n, s) VALUES (1, 'a'), (2, '(;)')")
    await runQuery('INSERT INTO t (n, s) FORMAT JSONEachRow {"n":3,"s":"INSERT"}')
    await runQuery('INSERT INTO t (n, s) SELECT n + 10, upper(s) FROM t')
    expect(await runQuery('SELECT sum(n), count() FROM t')).toBe('42\t6')
  })

  test('@clickhouse/client inserts objects with nested JSON', async () => {
    const client = createClient({ url: server.url })
    await runQuery(
      'CREATE OR REPLACE TABLE j (at DateTime64(3), d JSON) ENGINE = MergeTree ORDER BY at',
    )
    const d = { root: { su_binary: true }, list: [1, 2], text: 'a"\\\n\té😀' }
    await client.insert({
      table: 'j',
      values: [{ at: '2026-11-20T10:11:12.345Z', d }],
      format: 'JSONEachRow',
      clickhouse_settings: { async_insert: 0, date_time_input_format: 'best_effort' },
    })
    const query = 'SELECT at, d.root.su_binary AS su, d.text AS text FROM j'
    const rows = await client.query({ query, format: 'JSONEachRow' })
    const at = '2026-11-20 10:11:12.345'
    expect(await rows.json()).toEqual([{ at, su: true, text: d.text }])
    await client.close()
  })
})

describe('settings of an insert', () => {
  test('the same deduplication token stores a batch once', async () => {
    await runQuery('ALTER TABLE t MODIFY SETTING non_replicated_deduplication_window = 100')
    for (const token of ['batch-1', 'batch-1', 'batch-2']) {
      const params = { insert_deduplication_token: token }
      await insert('INSERT INTO t FORMAT JSONEachRow', '{"n":1}', params)
    }
    expect(await runQuery('SELECT count() FROM t')).toBe('2')
  })

  test('unknown fields are rejected or skipped, by the setting', async () => {
    const rows = '{"n":1,"unknown":2}'
    const strict = { input_format_skip_unknown_fields: '0' }
    const refused = await insert('INSERT INTO t FORMAT JSONEachRow', rows, strict)
    expect(refused.headers['x-clickhouse-exception-code']).toBe('117')
    const lax = { input_format_skip_unknown_fields: '1' }
    expect((await insert('INSERT INTO t FORMAT JSONEachRow', rows, lax)).status).toBe(200)
    expect(await runQuery('SELECT count() FROM t')).toBe('1')
  })

  test('a duplicated path in a JSON value is rejected or skipped, by the setting', async () => {
    await runQuery('CREATE OR REPLACE TABLE j (d JSON) ENGINE = Memory')
    const query = 'INSERT INTO j FORMAT JSONEachRow'
    expect((await insert(query, '{"d":{"a":1,"a":2}}')).status).toBe(400)
    const params = { type_json_skip_duplicated_paths: '1' }
    expect((await insert(query, '{"d":{"a":1,"a":2}}', params)).status).toBe(200)
  })

  test('one bad row discards its whole batch', async () => {
    const bad = await insert('INSERT INTO t FORMAT JSONEachRow', '{"n":1}\n{"n":"x"}\n{"n":3}')
    expect(bad.status).toBe(400)
    expect(await runQuery('SELECT count() FROM t')).toBe('0')
  })
})

describe('rows are data', () => {
  const attacks = ['x', '', '; DROP TABLE t; --', '', "'); DROP TABLE t; --", '\\', 'SELECT 1;', '']
  test.each(['\n', ';\n\n', '\r\n'])(
    'text that looks like SQL is stored, lines by %j',
    async (nl) => {
      const text = attacks.join(nl)
      await insert('INSERT INTO t (s) FORMAT RawBLOB', text)
      await insert('INSERT INTO t (s) FORMAT LineAsString', text)
      await insert('INSERT INTO t (s) FORMAT JSONEachRow', JSON.stringify({ s: text }))
      await insert('INSERT INTO t (s) FORMAT CSV', `"${text.replaceAll('"', '""')}"`)
      const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
      expect(await runQuery('SELECT count() FROM t')).toBe(String(3 + lines))
      const same = await runQuery('SELECT count() FROM t WHERE s = {v:String}', {
        param_v: text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r'),
      })
      expect(same).toBe('3')
    },
  )

  test.each([
    ['JSONEachRow', '{"n":1}\n\nDROP TABLE t'],
    ['TabSeparated', '1\ta\t9\n;DROP TABLE t;\n'],
    ['CSV', '1,a,9\n\n;DROP TABLE t\n'],
  ])('%s with a statement behind its rows is an error', async (format, body) => {
    const reply = await insert(`INSERT INTO t FORMAT ${format}`, body)
    expect(reply.status).toBeGreaterThanOrEqual(400)
    expect(await runQuery('SELECT count() FROM t')).toBe('0')
  })

  test('values end at a semicolon, and text after it is not run', async () => {
    await insert('INSERT INTO t VALUES', "(1, 'a', 1); DROP TABLE t")
    expect(await runQuery('SELECT count() FROM t')).toBe('1')
  })

  test('two statements in one request are an error', async () => {
    const reply = await call({ body: 'SELECT 1; DROP TABLE t' })
    expect(reply.headers['x-clickhouse-exception-code']).toBe('62')
    expect(await runQuery('EXISTS TABLE t')).toBe('1')
  })
})

describe('bodies', () => {
  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('a %s body is unpacked', async (encoding, compress) => {
    const body = compress(Buffer.from('{"n":1}\n{"n":2}\n'))
    const query = 'INSERT INTO t FORMAT JSONEachRow'
    const headers = { 'Content-Encoding': encoding }
    expect((await call({ params: { query, async_insert: '0' }, headers, body })).status).toBe(200)
    expect(await runQuery('SELECT sum(n) FROM t')).toBe('3')
  })

  test('100 MB in one insert are accepted, and their memory is freed afterwards', async () => {
    const line = `{"n":7,"s":"${'x'.repeat(2_000)}"}\n`
    const body = Buffer.from(line.repeat(50_000))
    await insert('INSERT INTO t FORMAT JSONEachRow', line.repeat(1_000))
    const before = residentBytes()
    expect((await insert('INSERT INTO t FORMAT JSONEachRow', body)).status).toBe(200)
    expect(await runQuery('SELECT count() FROM t')).toBe('51000')
    await expect.poll(() => residentBytes() - before, { timeout: 60_000 }).toBeLessThan(600 << 20)
  })

  test('an answer is streamed while it is computed', async () => {
    const query = 'SELECT number, repeat(toString(number), 20) FROM numbers(100000000)'
    const before = residentBytes()
    const { received } = await readAndHangUp(query, 32 << 20)
    expect(received).toBeGreaterThanOrEqual(32 << 20)
    expect(residentBytes() - before).toBeLessThan(400 << 20)
    // It also ends when its client has gone.
    await waitUntilIdle()
  })

  test('a read by GET ends when its client has gone', async () => {
    const abort = new AbortController()
    const query = 'SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))'
    const pending = call({ params: { query, query_id: 'abandoned' }, signal: abort.signal })
    pending.catch(() => undefined)
    const running = "SELECT count() FROM system.processes WHERE query_id = 'abandoned'"
    await expect.poll(() => runQuery(running), { timeout: 60_000 }).toBe('1')
    abort.abort()
    await expect(pending).rejects.toThrow()
    await expect.poll(() => runQuery(running), { timeout: 60_000 }).toBe('0')
  })

  test('KILL QUERY ends any other query', async () => {
    const body = 'SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))'
    const pending = call({ body, params: { query_id: 'killed' } })
    const running = "SELECT count() FROM system.processes WHERE query_id = 'killed'"
    await expect.poll(() => runQuery(running), { timeout: 60_000 }).toBe('1')
    await runQuery("KILL QUERY WHERE query_id = 'killed' SYNC")
    expect((await pending).headers['x-clickhouse-exception-code']).toBe('394')
  })
})

describe('concurrency', () => {
  test('200 concurrent requests, reads and writes, are all answered', async () => {
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        i % 4 === 0
          ? insert('INSERT INTO t FORMAT JSONEachRow', `{"n":${i},"s":"s"}`)
          : call({ body: `SELECT ${i}` }),
      ),
    )
    replies.forEach((reply, i) => {
      expect(reply).toMatchObject({ status: 200, text: i % 4 === 0 ? '' : `${i}\n` })
    })
    expect(await runQuery('SELECT count(), sum(n) FROM t')).toBe('50\t4900')
  })

  test('a small read does not wait for a long insert or a long query', async () => {
    const rows = Buffer.from('{"n":7,"s":"abcdefghijklmnopqrstuvwxyz"}\n'.repeat(400_000))
    let working = 2
    const done = () => {
      working--
    }
    const long = 'SELECT uniqExact(number * 7) FROM numbers_mt(5000000)'
    const longRequests = [insert('INSERT INTO t FORMAT JSONEachRow', rows), call({ body: long })]
    for (const one of longRequests) one.then(done, done)
    // One that waited for the others would be answered after them.
    let reads = 0
    do {
      expect(await runQuery('SELECT 1')).toBe('1')
      if (working === 2) reads++
    } while (working > 0)
    for (const one of await Promise.all(longRequests)) expect(one.status).toBe(200)
    expect(reads).toBeGreaterThan(0)
  })

  test('parts are merged in the background', async () => {
    for (let i = 0; i < 30; i++) await insert('INSERT INTO t FORMAT JSONEachRow', `{"n":${i}}`)
    const parts = "SELECT count() FROM system.parts WHERE table = 't' AND active"
    await expect
      .poll(async () => Number(await runQuery(parts)), { timeout: 60_000 })
      .toBeLessThan(15)
    expect(await runQuery('SELECT count() FROM t')).toBe('30')
  })
})

function residentBytes(): number {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))
  return Number(kilobytes![1]) * 1024
}

async function waitUntilIdle(): Promise<void> {
  const others = 'SELECT count() FROM system.processes'
  await until('no other query runs', async () => (await runQuery(others)) === '1')
}

function readAndHangUp(query: string, bytesMax: number): Promise<{ received: number }> {
  const { hostname, port, username, password } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const auth = `${username}:${password}`
    const pending = request({ hostname, port, auth, method: 'POST', agent: false }, (response) => {
      let received = 0
      response.on('data', (chunk: Buffer) => {
        received += chunk.length
        if (received < bytesMax) return
        response.destroy()
        resolve({ received })
      })
    })
    pending.on('error', reject)
    pending.end(query)
  })
}
