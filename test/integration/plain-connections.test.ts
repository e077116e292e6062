// The quick way of reading requests beside Node's own server: whatever bytes arrive, and however
// they are cut, both must have read the same request, or the quick way must have left it to Node.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PlainHead } from '#shared/core/plain-request.ts'
import {
  answerPlain,
  type PlainConnection,
  type PlainConnections,
  servePlainly,
} from '#shared/io/plain-connections.ts'
import { until } from '../support/until.ts'

const path = '/v1/rasp/ingest'

/** What a server has understood. */
type Read = { url: string; type: string; signature: string; id: string; body: string }

type Side = { server: Server; port: number; reads: Read[] }

function answerOf(read: Read, close: boolean): string {
  const body = JSON.stringify(read)
  return (
    `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
    `connection: ${close ? 'close' : 'keep-alive'}\r\n\r\n${body}`
  )
}

async function startNode(): Promise<Side> {
  const reads: Read[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const read = readOf(request, Buffer.concat(chunks))
      reads.push(read)
      const body = JSON.stringify(read)
      response.writeHead(200, { 'content-length': Buffer.byteLength(body) }).end(body)
    })
  })
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port, reads }
}

function readOf(request: IncomingMessage, body: Buffer): Read {
  const { headers } = request
  return {
    url: `${request.method} ${request.url}`,
    type: headers['content-type'] ?? '',
    signature: String(headers['x-service-signature'] ?? '-'),
    id: String(headers['x-request-id'] ?? '-'),
    body: body.toString('latin1'),
  }
}

let node: Side
let both: Side
let plain: PlainConnections
let plainReads: Read[] = []
let handedOver = 0
let hold: PlainConnection | null = null
let holding = false

beforeAll(async () => {
  node = await startNode()
  both = await startNode()
  plain = servePlainly(both.server, {
    path,
    bodyBytesMax: 512,
    handle: (head, body, connection) => {
      const read = plainReadOf(head, body)
      plainReads.push(read)
      if (holding) hold = connection
      else answerPlain(connection, answerOf(read, connection.closing), 'latin1')
      return true
    },
    handedOver: () => handedOver++,
    keepAliveMs: 1_500,
    silentMs: 1_000,
  })
})

afterAll(() => {
  for (const { server } of [node, both]) {
    server.closeAllConnections()
    server.close()
  }
  plain.closeAll()
})

function plainReadOf(head: PlainHead, body: Buffer): Read {
  return {
    url: `POST ${path}`,
    type: head.contentType,
    signature: head.signature ?? '-',
    id: head.requestId ?? '-',
    body: body.toString('latin1'),
  }
}

/** Sends bytes in these pieces and returns all answers' statuses and bodies once it is closed. */
async function exchange(port: number, pieces: readonly Buffer[]): Promise<string[]> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => undefined)
  for (const piece of pieces) {
    if (socket.destroyed || !socket.writable) break
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.end()
  if (!socket.closed) await once(socket, 'close')
  return text
    .split(/(?=HTTP\/1\.1 \d{3})/)
    .filter((answer) => answer !== '')
    .map((answer) => `${answer.slice(9, 12)} ${answer.split('\r\n\r\n')[1] ?? ''}`)
}

const name = fc.constantFrom(
  ...['Host', 'host', 'Content-Length', 'content-length', 'Content-Type', 'X-Service-Signature'],
  ...['X-Request-Id', 'Connection', 'Transfer-Encoding', 'Content-Encoding', 'Expect', 'Upgrade'],
  ...[
    'TE',
    'Trailer',
    'User-Agent',
    'Accept',
    'X_Under',
    'X-Service-Signature ',
    ' Host',
    'X:',
    '',
  ],
)
const value = fc.constantFrom(
  ...[
    'x',
    '5',
    '05',
    '+5',
    '5 ',
    ' 5',
    '\t5',
    '0',
    '-1',
    '5, 5',
    '99999999',
    'keep-alive',
    'close',
  ],
  ...['Keep-Alive', 'chunked', 'identity', 'gzip', 'application/json', '100-continue', 'h2c', ''],
  ...['a b', 'a\tb', 'a\u0001b', '\u00e9', 'upgrade', 'x\nHost: y', 'x\rHost: y', 'x\r\n folded'],
)
const extra = fc.record({ name, value, separator: fc.constantFrom(': ', ':', ':  ', ' : ') })
const requestLine = fc.constantFrom(
  ...Array.from({ length: 12 }, () => `POST ${path} HTTP/1.1`),
  ...[`POST ${path} HTTP/1.0`, `POST ${path}?a=1 HTTP/1.1`, `GET ${path} HTTP/1.1`],
  ...[`POST  ${path} HTTP/1.1`, `post ${path} HTTP/1.1`, `POST http://x${path} HTTP/1.1`],
)
const oneRequest = fc
  .record({
    line: requestLine,
    body: fc.constantFrom('hello', '{"a":1}', '', 'x'.repeat(700), '0\r\n\r\n', 'POST / HTTP/1.1'),
    type: fc.constantFrom('application/json', 'application/json', 'text/plain', ''),
    extras: fc.array(extra, { maxLength: 2 }),
    leave: fc.constantFrom('', '', '', '', 'host', 'length'),
    end: fc.constantFrom('\r\n', '\r\n', '\r\n', '\r\n', '\n'),
  })
  .map(({ line, body, type, extras, leave, end }) => {
    const headers = [
      ...(leave === 'host' ? [] : ['Host: x']),
      `Content-Type: ${type}`,
      ...(leave === 'length' ? [] : [`Content-Length: ${body.length}`]),
      ...extras.map((one) => `${one.name}${one.separator}${one.value}`),
    ]
    return `${[line, ...headers].join(end)}${end}${end}${body}`
  })

/** Cuts bytes at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length))
}

const post = `POST ${path} HTTP/1.1`
const type = 'Content-Type: application/json'
/** What has led servers before one another to read two requests where there was one. */
const framings: [string, string[], string][] = [
  ['two equal lengths', [post, 'Host: x', type, 'Content-Length: 5', 'Content-Length: 5'], 'hello'],
  ['two lengths', [post, 'Host: x', type, 'Content-Length: 5', 'Content-Length: 2'], 'hello'],
  ['a list of lengths', [post, 'Host: x', type, 'Content-Length: 5, 5'], 'hello'],
  ['a signed length', [post, 'Host: x', type, 'Content-Length: +5'], 'hello'],
  ['a length in hex', [post, 'Host: x', type, 'Content-Length: 0x5'], 'hello'],
  ['no length', [post, 'Host: x', type], 'hello'],
  [
    'a length and chunks',
    [post, 'Host: x', type, 'Content-Length: 5', 'Transfer-Encoding: chunked'],
    '0\r\n\r\n',
  ],
  ['chunks', [post, 'Host: x', type, 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'],
  ['no host', [post, type, 'Content-Length: 5'], 'hello'],
  ['two hosts', [post, 'Host: x', 'Host: y', type, 'Content-Length: 5'], 'hello'],
  ['a space before the colon', [post, 'Host: x', type, 'Content-Length : 5'], 'hello'],
  ['a folded header', [post, 'Host: x', type, 'X-A: b', ' c', 'Content-Length: 5'], 'hello'],
  ['an expectation', [post, 'Host: x', type, 'Content-Length: 5', 'Expect: y'], 'hello'],
  ['two signatures', [post, 'Host: x', type, 'Content-Length: 5', ...twice('a', 'b')], 'hello'],
  ['HTTP/1.0', [`POST ${path} HTTP/1.0`, 'Host: x', type, 'Content-Length: 5'], 'hello'],
  ['a tab in a value', [post, 'Host: x', type, 'X-A: b\tc', 'Content-Length: 5'], 'hello'],
  ['a null in a value', [post, 'Host: x', type, 'X-A: b\0c', 'Content-Length: 5'], 'hello'],
]

function twice(a: string, b: string): string[] {
  return [`X-Service-Signature: ${a}`, `X-Service-Signature: ${b}`]
}

describe('a framing', () => {
  it.each(framings)('%s: is read as Node reads it', async (_name, lines, body) => {
    const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')
    node.reads.length = 0
    both.reads.length = 0
    plainReads = []
    const [expected, found] = [
      await exchange(node.port, [bytes]),
      await exchange(both.port, [bytes]),
    ]
    expect(found).toEqual(expected)
    expect([...plainReads, ...both.reads]).toEqual(node.reads)
  })
})

describe('whatever arrives', () => {
  it('is read as Node reads it, answer for answer, however it is cut', async () => {
    let plainOnes = 0
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          { weight: 3, arbitrary: oneRequest.map((one) => [one]) },
          { weight: 1, arbitrary: fc.array(oneRequest, { minLength: 2, maxLength: 3 }) },
        ),
        fc.array(fc.nat(2_000), { maxLength: 4 }),
        async (requests, places) => {
          const bytes = Buffer.from(requests.join(''), 'latin1')
          node.reads.length = 0
          both.reads.length = 0
          plainReads = []
          const [expected, found] = await Promise.all([
            exchange(node.port, cut(bytes, places)),
            exchange(both.port, cut(bytes, places)),
          ])
          const reads = [...plainReads, ...both.reads]
          if (requests.length > 1 && expected.some((answer) => !answer.startsWith('200'))) {
            // How much of what came with a broken request is answered is chance with Node alone too.
            const common = Math.min(reads.length, node.reads.length)
            expect(reads.slice(0, common)).toEqual(node.reads.slice(0, common))
          } else {
            expect(found).toEqual(expected)
            expect(reads).toEqual(node.reads)
          }
          plainOnes += plainReads.length
        },
      ),
      { numRuns: 2_500 },
    )
    // Both ways were really taken.
    expect(plainOnes).toBeGreaterThan(150)
    expect(handedOver).toBeGreaterThan(150)
  })
})

const request = (body: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n${more}\r\n${body}`

describe('a connection', () => {
  it('is kept for the next request, and closed when its client asks for it', async () => {
    const socket = connect({ port: both.port, host: '127.0.0.1' })
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    const before = handedOver
    for (let n = 1; n <= 3; n++) {
      socket.write(request(`{"n":${n}}`))
      await until(`answer ${n}`, () => text.split('HTTP/1.1 200').length - 1 === n)
    }
    socket.write(request('{}', 'Connection: close\r\n'))
    await once(socket, 'close')
    expect(text).toContain('connection: close')
    expect(handedOver).toBe(before)
  })

  it('on which more is sent before the answer gets its answers in their order', async () => {
    holding = true
    const socket = connect({ port: both.port, host: '127.0.0.1' })
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(request('{"n":1}'))
    await until('the first is held', () => hold !== null)
    socket.write(request('{"n":2}') + request('{"n":3}'))
    await new Promise((resolve) => setTimeout(resolve, 20))
    holding = false
    answerPlain(hold!, answerOf(plainReads.at(-1)!, false), 'latin1')
    await until('all are answered', () => text.split('HTTP/1.1 200').length - 1 === 3)
    expect([...text.matchAll(/"body":"\{\\"n\\":(\d)\}"/g)].map(([, n]) => n)).toEqual([
      '1',
      '2',
      '3',
    ])
    socket.destroy()
    hold = null
  })

  it('whose client has gone before the answer costs nothing', async () => {
    holding = true
    hold = null
    const open = plain.count()
    const socket = connect({ port: both.port, host: '127.0.0.1' })
    socket.write(request('{}'))
    await until('it is held', () => hold !== null)
    socket.resetAndDestroy()
    await until('it is forgotten', () => plain.count() === open)
    holding = false
    answerPlain(hold!, answerOf(plainReads.at(-1)!, false), 'latin1')
  })

  it.each([
    ['that says nothing', ''],
    ['that has been answered and says nothing more', request('{}')],
  ])('%s is closed in time', async (_name, bytes) => {
    const socket = connect({ port: both.port, host: '127.0.0.1' })
    socket.write(bytes)
    socket.resume()
    const startMs = performance.now()
    await once(socket, 'close')
    expect(performance.now() - startMs).toBeGreaterThan(900)
  })

  it('whose request takes its time is Node’s, which has its own limits', async () => {
    const before = handedOver
    const [start, rest] = [request('{"slow":1}').slice(0, -4), request('{"slow":1}').slice(-4)]
    const socket = connect({ port: both.port, host: '127.0.0.1' })
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(start)
    await until('it is handed over', () => handedOver > before)
    socket.write(rest)
    await until('it is answered', () => text.includes('slow'))
    socket.destroy()
  })
})
