/** Shapes of traffic without a valid signature, key or session, by what they spend the bytes on. */

/** Where the traffic goes: an address that takes a body from anyone, or refuses it first. */
export type Target = 'ingest' | 'api' | 'console'

export type Shape = {
  name: string
  /** Sent once over each connection. */
  opening: string
  /** Sent after it until the time is over. */
  repeated?: string
  connections: number
  /** Between two pieces of `repeated`; without it they follow each other at once. */
  pauseMs?: number
  /** Whether answers are left unread. */
  unread?: boolean
}

const paths: Record<Target, string> = {
  ingest: '/v1/rasp/ingest',
  api: '/v1/di/alerts/alr_x/disposition',
  console: '/admin/v1/session',
}

const wrong = `X-Service-Signature: ${'A'.repeat(43)}=\r\n`
const chunkedLine = 'Transfer-Encoding: chunked\r\n'

/** Chunks of one size that add up to this many bytes. */
const chunks = (size: number, bytes = 65_536, extension = ''): string =>
  `${size.toString(16)}${extension}\r\n${'x'.repeat(size)}\r\n`.repeat(bytes / size)

const lines = (count: number, make: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => `${make(n)}\r\n`).join('')

/** All shapes of one listener. */
export function makeShapes(target: Target): Shape[] {
  const path = paths[target]
  const head = (more: string, type = 'application/json') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nOrigin: http://x\r\n${wrong}${more}\r\n`
  const once = (name: string, request: string, connections = 8): Shape => ({
    name,
    opening: request,
    repeated: request,
    connections,
  })
  const chunked = (name: string, body: string, type?: string): Shape =>
    once(name, `${head(chunkedLine, type)}${body}0\r\n\r\n`)
  const large = `Content-Length: 65536\r\n`
  const get = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
  const common: Shape[] = [
    chunked('chunks of 1 byte', chunks(1)),
    chunked('chunks of 8 bytes', chunks(8)),
    chunked('chunks of 64 bytes', chunks(64)),
    chunked('chunks of 1 KiB', chunks(1_024)),
    chunked('chunks of 64 KiB', chunks(65_536)),
    chunked('a refused type, chunks of 1 byte', chunks(1), 'text/plain'),
    once('a body of 64 KiB', `${head(large)}${'x'.repeat(65_536)}`),
    {
      name: 'a body announced as 100 MB',
      opening: head('Content-Length: 100000000\r\n'),
      repeated: 'x'.repeat(65_536),
      connections: 8,
    },
    chunked('extensions of 16 KB', chunks(1, 60, `;a=${'b'.repeat(16_000)}`)),
    once('90 headers', `${head(lines(90, (n) => `x-${n}: a`) + large)}${'x'.repeat(65_536)}`),
    once('4,000 headers', head(lines(2_700, () => 'a:b'))),
    { ...once('16,000 requests, pipelined', get.repeat(1_000)), unread: true },
    once('a coding before chunked', head('Transfer-Encoding: gzip, chunked\r\n') + chunks(1)),
    { name: 'silent connections', opening: '', connections: 900 },
    {
      name: 'a body, byte by byte',
      opening: head(large),
      repeated: 'x',
      connections: 400,
      pauseMs: 5,
    },
    { ...chunked('chunks of 1 byte, many connections', chunks(1)), connections: 300 },
  ]
  return target === 'ingest' ? [...common, ...ingestShapes(head, chunked, once)] : common
}

/** Further ones of the listener that strangers know best. */
function ingestShapes(
  head: (more: string, type?: string) => string,
  chunked: (name: string, body: string, type?: string) => Shape,
  once: (name: string, request: string) => Shape,
): Shape[] {
  const small = `${head('Content-Length: 2\r\n')}{}`
  const batch = (more: string) => head(more).replace(paths.ingest, `${paths.ingest}/batch`)
  const largeBatch = batch('Content-Length: 524288\r\n')
  return [
    chunked('chunks of 2 bytes', chunks(2)),
    chunked('chunks of 32 bytes', chunks(32)),
    chunked('chunks of 256 bytes', chunks(256)),
    chunked('chunks of 4 KiB', chunks(4_096)),
    chunked('chunks with extensions of 1 byte', chunks(64, 65_536, ';a')),
    chunked('trailers of 16 KB', `${chunks(64, 64)}0\r\n${lines(2_700, () => 'a:b')}\r\n`),
    once('chunks of HTTP/1.0', head(chunkedLine).replace('1.1', '1.0') + chunks(1)),
    once('a length and chunks', head(`${chunkedLine}Content-Length: 5\r\n`) + chunks(1)),
    once('small bodies', small),
    once('small bodies, pipelined', small.repeat(100)),
    once(
      'a refused type, 64 KiB',
      `${head('Content-Length: 65536\r\n', 'a/b')}${'x'.repeat(65_536)}`,
    ),
    once('no HTTP', 'x'.repeat(65_536)),
    once('a batch of 512 KiB', largeBatch + 'x'.repeat(524_288)),
    once('a batch in chunks of 1 byte', batch(chunkedLine) + chunks(1)),
    {
      name: 'half a batch of 500 KB',
      opening: largeBatch + 'x'.repeat(500_000),
      connections: 100,
    },
    once('empty lines', '\r\n'.repeat(32_768)),
    {
      name: 'a chunk size of zeros',
      opening: head(chunkedLine),
      repeated: '0'.repeat(9_000),
      connections: 8,
    },
    {
      name: 'half a head of 15 KB',
      opening: `${head('').slice(0, -2)}x: ${'y'.repeat(15_000)}`,
      connections: 500,
    },
    {
      name: 'half a body of 60 KB',
      opening: `${head('Content-Length: 65536\r\n')}${'x'.repeat(60_000)}`,
      connections: 400,
    },
    {
      name: 'an announced body that never comes',
      opening: head('Content-Length: 65536\r\n'),
      connections: 900,
    },
    {
      name: 'an expected 100 that is not used',
      opening: head('Expect: 100-continue\r\nContent-Length: 9\r\n'),
      connections: 900,
    },
    {
      name: 'chunk after chunk',
      opening: head(chunkedLine),
      repeated: '1\r\nx\r\n',
      connections: 400,
      pauseMs: 5,
    },
  ]
}
