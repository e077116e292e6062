/**
 * Requests with an absurd framing at the shared server, in counted work: calls of Node's parser
 * into JavaScript, and bytes that are kept. Their connections end after the answer.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHttpServer, type HttpServerOptions } from '#shared/io/http/http-server.ts'
import { createBodyBudget } from '#shared/io/http/incoming/body-budget.ts'
import { receiveBody } from '#shared/io/http/incoming/receive-body.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { exchangeRaw } from '../../support/http/raw-http.ts'

const metrics = createMetrics('api')
const budget = createBodyBudget(1024 * 1024)
let port: number
let keptMax = 0
let received: (Buffer | string)[] = []
const work = { pieces: 0, requests: 0 }

const options: HttpServerOptions = {
  log: createLog('test', 'silent'),
  metrics,
  direct: (request, response) => {
    if (request.url !== '/direct') return false
    receiveBody(request, { bytesMax: 65_536, budget }, (body) => {
      received.push(body)
      response.end('read')
    })
    request.on('data', () => {
      keptMax = Math.max(keptMax, budget.bytes())
    })
    return true
  },
}
const app = createHttpServer(options)
app.post('/json', async ({ body }) => ({ body: body ?? 'none' }))
app.delete('/json', async ({ body }) => ({ body: body ?? 'none' }))
app.post('/small', { bodyLimit: 1_024 }, async () => ({}))
app.get('/slow', async () => {
  await new Promise((resolve) => setTimeout(resolve, 50))
  return {}
})

type Parser = Record<string, unknown> & { onIncoming: (...args: unknown[]) => unknown }

/** Counts what Node's parser calls for each connection. Node uses a parser again. */
function countCalls({ parser }: { parser: Parser }): void {
  const slot = Object.keys(parser).find(
    (key) => (parser[key] as { name?: string } | null)?.name === 'parserOnBody',
  )!
  const onBody = parser[slot] as Counted
  const original = onBody.original ?? onBody
  const counted: Counted = function parserOnBody(this: Parser, piece: Buffer) {
    work.pieces++
    original.call(this, piece)
  }
  counted.original = original
  parser[slot] = counted
  const { onIncoming } = parser
  parser.onIncoming = (...args) => {
    work.requests++
    return onIncoming(...args)
  }
}
type Counted = ((this: Parser, piece: Buffer) => void) & { original?: Counted }

beforeAll(async () => {
  app.server.on('connection', (socket) => countCalls(socket as unknown as { parser: Parser }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  ;({ port } = app.server.address() as AddressInfo)
})
afterAll(() => app.close())
beforeEach(() => {
  received = []
  keptMax = 0
  Object.assign(work, { pieces: 0, requests: 0 })
})

/** Sends bytes over a connection of their own and reads until the server ends it. */
const send = (text: string) => exchangeRaw(port, [Buffer.from(text, 'latin1')], 15_000)

/** The same, with a last request that shows that the connection was kept: its answer is 204. */
const last = 'OPTIONS /json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
const sendKept = async (text: string) => {
  const { statuses, text: answers } = await send(text + last)
  return { kept: statuses.at(-1) === 204, statuses: statuses.slice(0, -1), text: answers }
}

const chunked = (path: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
  `Transfer-Encoding: chunked\r\n${more}\r\n`
const chunksOf = (size: number, count: number, extension = '') =>
  `${size.toString(16)}${extension}\r\n${'x'.repeat(size)}\r\n`.repeat(count)
const end = '0\r\n\r\n'

async function countOf(reason: string): Promise<number> {
  const text = await metrics.registry.metrics()
  const [, value] =
    new RegExp(`^di_http_framing_refused_total\\{.*reason="${reason}".*\\} (\\d+)$`, 'm').exec(
      text,
    ) ?? []
  return Number(value)
}

describe('a body of 65,536 chunks of one byte', () => {
  it.each(['/direct', '/json', '/nothing'])('at %s is ended after a few of them', async (path) => {
    const before = await countOf('chunks')
    const { statuses, closed } = await send(chunked(path) + chunksOf(1, 65_536) + end)
    expect(statuses).toHaveLength(1)
    expect(closed).toBe(true)
    expect(work.pieces).toBeLessThan(50)
    expect(keptMax).toBeLessThanOrEqual(4_096)
    expect(budget.bytes()).toBe(0)
    expect(await countOf('chunks')).toBe(before + 1)
    if (path === '/direct') expect(received).toEqual(['framing'])
    if (path === '/json') expect(statuses).toEqual([400])
  })

  it('is ended during a request that reads no body', async () => {
    const head = 'GET /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const { statuses, closed } = await send(head + chunksOf(1, 65_536))
    expect(statuses).toEqual([200])
    expect(closed).toBe(true)
    expect(work.pieces).toBeLessThan(50)
  })
})

describe('chunks', () => {
  it.each([
    ['of 256 bytes', 256, 256],
    ['of 1 KiB', 1_024, 64],
    ['of 64 KiB', 65_536, 1],
    ['of one byte, a few', 1, 30],
  ])('%s are read into one buffer', async (_name, size, count) => {
    const { statuses, kept } = await sendKept(chunked('/direct') + chunksOf(size, count) + end)
    expect(statuses).toEqual([200])
    expect(kept).toBe(true)
    expect(received).toEqual([Buffer.alloc(size * count, 'x')])
    expect(keptMax).toBeLessThanOrEqual(65_536)
    expect(budget.bytes()).toBe(0)
  })

  it('with more extensions than the service reads are ended', async () => {
    const text = chunked('/direct') + chunksOf(1, 30, `;a=${'b'.repeat(16_000)}`) + end
    const { statuses, closed } = await send(text)
    expect([statuses.length, closed, received]).toEqual([1, true, ['framing']])
  })

  it('with a hundred trailers are ended', async () => {
    const trailers = Array.from({ length: 100 }, (_, n) => `x-${n}: a\r\n`).join('')
    const { closed } = await send(`${chunked('/direct') + chunksOf(1_000, 1)}0\r\n${trailers}\r\n`)
    expect([closed, received]).toEqual([true, ['framing']])
  })
})

describe('a head', () => {
  const body = '2\r\n{}\r\n0\r\n\r\n'
  it.each([
    ['Transfer-Encoding: gzip, chunked', 'HTTP/1.1', 400, 'transfer_encoding'],
    ['Transfer-Encoding: chunked', 'HTTP/1.0', 400, 'transfer_encoding'],
    ['Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', 'HTTP/1.1', 400, ''],
    ['Transfer-Encoding: chunked\r\nContent-Length: 12', 'HTTP/1.1', 400, ''],
    ['Host: y', 'HTTP/1.1', 400, 'host'],
    [`${'x: y\r\n'.repeat(99)}x: y`, 'HTTP/1.1', 431, 'headers'],
  ])('with %j in %s gets one answer and the end', async (headers, version, status, reason) => {
    const before = await countOf(reason)
    const request = `POST /json ${version}\r\nHost: x\r\n${headers}\r\n\r\n`
    const { statuses, closed } = await send(
      `${request}${body}GET /slow HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    expect([statuses, closed]).toEqual([[status], true])
    if (reason !== '') expect(await countOf(reason)).toBe(before + 1)
  })

  it('with a hundred headers is served', async () => {
    const head = `GET /slow HTTP/1.1\r\nHost: x\r\n${'x: y\r\n'.repeat(99)}\r\n`
    expect(await sendKept(head)).toMatchObject({ statuses: [200], kept: true })
  })
})

describe('pipelined requests', () => {
  const get = 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'

  it('wait in a small number; the next one gets a 429 and ends the connection', async () => {
    const { statuses, closed } = await send(get.repeat(2_000))
    expect(statuses).toEqual([...Array(16).fill(200), 429])
    expect(closed).toBe(true)
    expect(work.requests).toBeLessThan(20)
    expect(await countOf('pipelined')).toBe(1)
  })

  it('as many as may wait are all served, and the connection is kept', async () => {
    const { statuses, kept } = await sendKept(get.repeat(15))
    expect([statuses, kept]).toEqual([Array(15).fill(200), true])
  })
})

describe('a refused body', () => {
  it('that is announced as too large is not read: its sender gets the answer', async () => {
    const head = 'POST /small HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
    const text = `${head}Content-Length: 100000000\r\n\r\n${'x'.repeat(900_000)}`
    const { statuses, closed } = await send(text)
    expect([statuses, closed]).toEqual([[413], true])
    // What Node had read already.
    expect(work.pieces).toBeLessThan(16)
  })

  it('that came with its head keeps the connection', async () => {
    const text = 'POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'
    const { statuses, kept } = await sendKept(text + text)
    expect([statuses, kept]).toEqual([[404, 404], true])
  })
})

describe('an empty body', () => {
  const types = ['application/json', 'application/json; charset=utf-8', 'text/plain', 'no type']
  const framings = [
    'Content-Length: 0\r\n\r\n',
    'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    '\r\n',
  ]
  const methods = ['POST', 'DELETE']
  const all = methods.flatMap((method) =>
    types.flatMap((type) => framings.map((framing) => [method, type, framing] as const)),
  )
  // A content type that cannot be read is one that no chunked body can have.
  const cases = all.filter(
    ([, type, framing]) => type !== 'no type' || !framing.includes('chunked'),
  )

  it.each(cases)('of %s with %s and %j is no body', async (method, type, framing) => {
    const head = `${method} /json HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n`
    const { statuses, text } = await sendKept(head + framing)
    expect(statuses).toEqual([200])
    expect(text).toContain('{"body":"none"}')
  })

  it('is no JSON when it has a byte', async () => {
    const head = 'POST /json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
    expect((await send(`${head}Content-Length: 1\r\n\r\n `)).statuses).toEqual([400])
    const text = head.replace('application/json', 'text/plain')
    expect((await send(`${text}Content-Length: 1\r\n\r\n `)).statuses).toEqual([415])
  })
})

it('ends its server while clients still send', async () => {
  const own = createHttpServer({ ...options, metrics: createMetrics('api') })
  await own.listen({ host: '127.0.0.1', port: 0 })
  const sending = exchangeRaw(
    (own.server.address() as AddressInfo).port,
    [Buffer.from(chunked('/direct') + chunksOf(1, 100))],
    5_000,
  )
  await once(own.server, 'request')
  await own.close()
  expect((await sending).closed).toBe(true)
})
