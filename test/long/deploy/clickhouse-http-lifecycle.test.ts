// The embedded ClickHouse as a process: durability after a kill, the owner of a directory, its
// stop, and that it never outlives its parent.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

const rowsPerBatch = 10
let path: string

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'clickhouse life '))
})
afterEach(() => rmSync(path, { recursive: true, force: true }))

async function start(): Promise<TestClickhouse> {
  const server = await startClickhouse({ path })
  onTestFinished(async () => {
    await server.kill('SIGKILL')
  })
  return server
}

async function runQuery(server: TestClickhouse, sql: string, params?: Record<string, string>) {
  const headers = { Connection: 'close' }
  const reply = await callClickhouse(server.url, { body: sql, headers, ...(params && { params }) })
  expect(reply.text, sql).not.toMatch(/^Code: /)
  return reply.text.trimEnd()
}

describe('kill -9', () => {
  test('loses no acknowledged row, and leaves no partial batch', async () => {
    const acknowledged: number[] = []
    let next = 0
    // Inserts as the service sends them, and as a client that uses asynchronous inserts and does
    // not wait.
    const write = async (server: TestClickhouse, own: Record<string, string>) => {
      for (;;) {
        const batch = next++
        const row = `{"batch":${batch}}\n`
        const params = { query: 'INSERT INTO kept FORMAT JSONEachRow', ...own }
        await callClickhouse(server.url, { params, body: row.repeat(rowsPerBatch) })
        acknowledged.push(batch)
      }
    }
    const asynchronous = { async_insert: '1', wait_for_async_insert: '0' }
    let server = await start()
    await runQuery(server, 'CREATE TABLE kept (batch UInt32) ENGINE = MergeTree ORDER BY batch')
    for (const workMs of [50, 150, 400]) {
      const before = acknowledged.length
      const writers = [{ async_insert: '0' }, { async_insert: '0' }, asynchronous, asynchronous]
      const writing = Promise.allSettled(writers.map((own) => write(server, own)))
      await sleep(workMs)
      while (acknowledged.length === before) await sleep(1)
      await server.kill('SIGKILL')
      await writing
      server = await start()
    }
    const counts = await runQuery(server, 'SELECT batch, count() FROM kept GROUP BY batch')
    const stored = new Map(counts.split('\n').map((line) => line.split('\t').map(Number) as Pair))
    expect(acknowledged.filter((batch) => stored.get(batch) !== rowsPerBatch)).toEqual([])
    expect([...stored.values()].filter((count) => count !== rowsPerBatch)).toEqual([])
  })

  type Pair = [number, number]
})

describe('a merged part that a full disk corrupted', () => {
  const breaks: [how: string, files: RegExp, keptBytes: number][] = [
    ['its marks are empty', /\.c?mrk\d?$/, 0],
    ['its data is cut short', /\.bin$/, 100],
  ]
  test.each(breaks)('%s: is detected, and its source parts are active again', async (...args) => {
    const [, files, keptBytes] = args
    let server = await start()
    await runQuery(server, 'CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n')
    for (const from of [0, 1_000, 2_000]) {
      await runQuery(server, `INSERT INTO kept SELECT number + ${from} FROM numbers(1000)`)
    }
    await runQuery(server, 'OPTIMIZE TABLE kept FINAL')
    // Source parts stay long enough to be restored.
    const lifetime = `SELECT value FROM system.merge_tree_settings WHERE name = 'old_parts_lifetime'`
    expect(Number(await runQuery(server, lifetime))).toBeGreaterThanOrEqual(2)
    const place = await runQuery(
      server,
      `SELECT path FROM system.parts WHERE active AND table = 'kept' FORMAT TSVRaw`,
    )
    const ended = server.ended
    for (const file of readdirSync(place).filter((name) => files.test(name))) {
      truncateSync(join(place, file), keptBytes)
    }
    expect(await ended).toBe(1)
    server = await start()
    expect(await runQuery(server, 'SELECT count(), uniqExact(n), sum(n) FROM kept')).toBe(
      '3000\t3000\t4498500',
    )
  })
})

describe('a directory', () => {
  test('has one owner, whose name a second process gets; a dead owner does not count', async () => {
    const first = await start()
    const refused = startClickhouse({ path })
    await expect(refused).rejects.toThrow(`in use by another ClickHouse, process ${first.pid}`)
    expect(await runQuery(first, 'SELECT 1')).toBe('1')
    await first.kill('SIGKILL')
    const second = await start()
    expect(await runQuery(second, 'SELECT 1')).toBe('1')
  })

  test('keeps databases, tables and views over an orderly restart', async () => {
    const first = await start()
    await runQuery(first, 'CREATE DATABASE kept')
    await runQuery(first, 'CREATE TABLE kept.t (n UInt32) ENGINE = MergeTree ORDER BY n')
    await runQuery(
      first,
      'CREATE TABLE kept.s (n UInt64) ENGINE = SummingMergeTree ORDER BY tuple()',
    )
    await runQuery(
      first,
      'CREATE MATERIALIZED VIEW kept.v TO kept.s AS SELECT sum(n) AS n FROM kept.t',
    )
    await runQuery(first, 'INSERT INTO kept.t VALUES (1), (2)')
    await runQuery(first, 'CREATE TABLE plain (n UInt32) ENGINE = MergeTree ORDER BY n')
    expect(await first.kill('SIGTERM')).toBe(0)
    const second = await start()
    await runQuery(second, 'INSERT INTO kept.t VALUES (39)')
    expect(await runQuery(second, 'SELECT sum(n) FROM kept.s')).toBe('42')
    expect(await runQuery(second, 'EXISTS TABLE plain', { database: 'default' })).toBe('1')
  })

  test('keeps unflushed rows over an orderly restart', async () => {
    const first = await start()
    await runQuery(first, 'CREATE TABLE kept (n UInt32) ENGINE = MergeTree ORDER BY n')
    const limits = '1, 1000, 1000, 1000000, 1000000, 100000000, 100000000'
    await runQuery(first, `CREATE TABLE later AS kept ENGINE = Buffer(default, kept, ${limits})`)
    await runQuery(first, 'INSERT INTO later VALUES (42)')
    expect(await runQuery(first, 'SELECT count() FROM kept')).toBe('0')
    expect(await first.kill('SIGTERM')).toBe(0)
    expect(await runQuery(await start(), 'SELECT sum(n) FROM kept')).toBe('42')
  })
})

describe('SIGTERM', () => {
  test('waits for a running query, not for an idle connection', async () => {
    const server = await start()
    await holdIdleConnection(server)
    const slow = runQuery(server, 'SELECT sleep(1.5)', { query_id: 'slow' })
    const running = "SELECT count() FROM system.processes WHERE query_id = 'slow'"
    await expect.poll(() => runQuery(server, running), { timeout: 20_000 }).toBe('1')
    const [code, answer] = await Promise.all([server.kill('SIGTERM'), slow])
    expect(answer).toBe('0')
    expect(code).toBe(0)
  })

  test('ends the server, whatever query runs', async () => {
    const server = await start()
    const endless = 'SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))'
    const cut = callClickhouse(server.url, { body: endless }).catch(() => undefined)
    const running = "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%'"
    await expect.poll(() => runQuery(server, running), { timeout: 20_000 }).toBe('2')
    expect(await server.kill('SIGTERM')).toBe(0)
    await cut
  })
})

describe('the parent', () => {
  test('when it is killed, the server ends as well', async () => {
    const script = fileURLToPath(
      new URL('../../../deploy/local/clickhouse/clickhouse-server.ts', import.meta.url),
    )
    const flags = ['--path', path, '--listen', '127.0.0.1:0', '--parent-pid']
    const source = `require('node:child_process').spawn(process.execPath,
      [...${JSON.stringify([script, ...flags])}, String(process.pid)], { stdio: 'inherit' })`
    const node = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url))
    const parent = spawn(node, ['-e', source], { stdio: ['ignore', 'pipe', 'ignore'] })
    let pid = 0
    onTestFinished(() => {
      parent.kill('SIGKILL')
      if (pid !== 0 && isAlive(pid)) process.kill(pid, 'SIGKILL')
    })
    const lines = createInterface({ input: parent.stdout })
    const line = await new Promise<string>((resolve) => lines.once('line', resolve))
    const { listening } = JSON.parse(line) as { listening: string }
    pid = Number(readFileSync(join(path, 'run', 'owner'), 'utf8'))
    expect((await callClickhouse(listening, { path: '/ping' })).text).toBe('Ok.\n')
    expect(isAlive(pid)).toBe(true)
    parent.kill('SIGKILL')
    await expect.poll(() => isAlive(pid), { timeout: 20_000 }).toBe(false)
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function holdIdleConnection(server: TestClickhouse): Promise<void> {
  const { hostname, port } = new URL(server.url)
  const agent = new Agent({ keepAlive: true, timeout: 60_000 })
  onTestFinished(() => agent.destroy())
  await new Promise<void>((resolve, reject) => {
    get({ agent, hostname, port, path: '/ping' }, (response) => {
      response.resume()
      response.on('end', resolve)
    }).on('error', reject)
  })
}
