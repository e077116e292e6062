// The connections of our ClickHouse client: an aborted request affects no other, and no connection
// stays open until the server closes it; what a proxy answers is quoted nowhere.
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

let server: TestClickhouse

beforeAll(async () => {
  server = await startClickhouse()
})
afterAll(() => server?.stop())

/** A client behind a proxy that knows its connections. */
async function createWatched(): Promise<{ clickhouse: Clickhouse; open: Set<Socket> }> {
  const { port } = new URL(server.url)
  const open = new Set<Socket>()
  const wire = createServer((near) => {
    const far = connect(Number(port), '127.0.0.1')
    open.add(near)
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => undefined)
    near.once('close', () => {
      open.delete(near)
      far.destroy()
    })
  })
  await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve))
  const url = new URL(server.url)
  url.port = `${(wire.address() as { port: number }).port}`
  const clickhouse = createClickhouse(url.href, {
    name: 'test',
    database: 'default',
    connectionsMax: 1,
  })
  onTestFinished(async () => {
    await clickhouse.close()
    wire.close()
  })
  return { clickhouse, open }
}

const runQuery = async (clickhouse: Clickhouse, query: string, signal?: AbortSignal) => {
  const more = signal === undefined ? {} : { abort_signal: signal }
  const result = await clickhouse.query({ query, format: 'JSONCompactEachRow', ...more })
  return (await result.json<[number]>())[0]![0]
}

it('a request that is aborted before it has a connection affects no later one', async () => {
  const { clickhouse } = await createWatched()
  await runQuery(clickhouse, 'select 1')
  for (let times = 0; times < 5; times++) {
    const givenUp = new AbortController()
    const aborted = runQuery(clickhouse, 'select 2', givenUp.signal)
    givenUp.abort()
    await expect(aborted).rejects.toThrow(/abort/i)
  }
  // Longer than an idle connection is kept.
  const slow = 'select sleepEachRow(1) from numbers(3) settings max_block_size = 1'
  expect(await runQuery(clickhouse, slow)).toBe(0)
})

it('the client closes an idle connection, seconds before a server would', async () => {
  const { clickhouse, open } = await createWatched()
  expect(await runQuery(clickhouse, 'select 3')).toBe(3)
  expect(open.size).toBe(1)
  await pause(1_000)
  expect(open.size).toBe(1)
  await until('it is closed', () => open.size === 0, 8_000)
  expect(await runQuery(clickhouse, 'select 4')).toBe(4)
})

it('an answer that is not of ClickHouse is in no error', async () => {
  const wire = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      const body = '<html>device-1234</html>'
      const head = `HTTP/1.1 502 Bad Gateway\r\ncontent-length: ${body.length}\r\n`
      socket.end(`${head}connection: close\r\n\r\n${body}`)
    })
  })
  await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve))
  const { port } = wire.address() as { port: number }
  const clickhouse = createClickhouse(`http://127.0.0.1:${port}/default`, { name: 'test' })
  onTestFinished(async () => {
    await clickhouse.close()
    wire.close()
  })
  const error = await runQuery(clickhouse, 'select 1').catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(Error)
  expect((error as Error).stack).not.toContain('device-1234')
  expect((error as Error).message).toContain('an answer that is not its own')
})
