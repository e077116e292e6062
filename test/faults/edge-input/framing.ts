/**
 * Requests that two parsers split differently, or with an encoding. A complete, correctly signed
 * request hides behind every ambiguity: a wrong split stores it.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  type HostileCase,
  ingestHead,
  jsonType,
  type Signer,
  toRequest,
  toSigned,
  validBody,
} from '../../support/telemetry/raw-submissions.ts'

/** Possible responses to an unreadable request; 0 is a closed connection. */
const unreadable = [0, 400, 401, 408, 411, 413, 414, 415, 417, 431, 501, 505]

const start = ingestHead + jsonType

/** Each needs a connection of its own. No response may be a 200, and nothing may be stored. */
export function makeSmugglingCases(acme: Signer): HostileCase[] {
  const text = () => JSON.stringify(validBody(acme.tenantId))
  const signed = () => toSigned(text(), acme).toString('latin1')
  const sign = (body: string) => `X-Service-Signature: ${signBody(body, acme.secret)}\r\n`
  const chunk = (body: string, size = Buffer.byteLength(body).toString(16)) =>
    `${size}\r\n${body}\r\n`
  const cases: HostileCase[] = []
  const add = (family: string, name: string, request: string) =>
    cases.push({
      family,
      name,
      expected: unreadable,
      request: Buffer.from(request, 'latin1'),
    })

  // Only the framing of the first request is wrong; the hidden one follows it.
  const framed = (name: string, framing: string, body = (of: string) => of) => {
    const own = text()
    add('smuggling', name, `${start}${sign(own)}${framing}\r\n${body(own)}${signed()}`)
  }
  const length = Buffer.byteLength(text())
  const chunked = (of: string) => `${chunk(of)}0\r\n\r\n`
  const both = `Content-Length: ${length}\r\nTransfer-Encoding: chunked\r\n`
  framed('length, then chunks', both, chunked)
  framed('chunks, then length', `Transfer-Encoding: chunked\r\nContent-Length: ${length}\r\n`)
  framed('length 0 and chunks', 'Content-Length: 0\r\nTransfer-Encoding: chunked\r\n', chunked)
  for (const [name, lengths] of [
    ['two lengths, equal', [length, length]],
    ['two lengths, the second shorter', [length, 0]],
    ['two lengths, the second longer', [length, length + 500]],
  ] as const) {
    framed(name, lengths.map((bytes) => `Content-Length: ${bytes}\r\n`).join(''))
  }
  for (const value of [
    ...[`+${length}`, `-${length}`, `${length}, ${length}`, `${length},0`, `0x${length}`],
    ...[`${length} ${length}`, `${length}.0`, `${length}e0`, `1_${length}`, '', 'x', `"${length}"`],
    ...['18446744073709551616', `18446744073709551${length}`, `\x0b${length}`, `${length}\0`],
  ]) {
    framed(`the length ${JSON.stringify(value)}`, `Content-Length: ${value}\r\n`)
  }
  for (const value of [
    ...['xchunked', 'chunkedx', 'chunked, chunked', 'chunked, identity', 'identity, chunked, x'],
    ...['gzip', '\x0bchunked', '"chunked"', 'chunked;q=1', ',', 'chunked\0', 'x\r\n chunked'],
  ]) {
    framed(`the coding ${JSON.stringify(value)}`, `Transfer-Encoding: ${value}\r\n`, chunked)
    const doubled = `Content-Length: ${length}\r\nTransfer-Encoding: ${value}\r\n`
    framed(`length and the coding ${JSON.stringify(value)}`, doubled)
  }
  const te = 'Transfer-Encoding: chunked\r\n'
  framed('chunks twice', te + te.replace('chunked', 'identity'), chunked)
  framed('a space before the colon', `Transfer-Encoding : chunked\r\n`, chunked)
  framed('a space before the length’s colon', `Content-Length : ${length}\r\n`)
  framed('a folded coding', `Transfer-Encoding:\r\n chunked\r\n`, chunked)
  framed('a folded header', `X-A: b\r\n c\r\nContent-Length: ${length}\r\n`)
  framed('a folded header with a tab', `X-A: b\r\n\tc\r\nContent-Length: ${length}\r\n`)
  framed('a bare line feed', `X-A: b\nContent-Length: ${length}\r\n`)
  framed('a bare return', `X-A: b\rContent-Length: ${length}\r\n`)
  framed('a null byte', `X-A: b\0c\r\nContent-Length: ${length}\r\n`)
  framed('a header without a name', `: b\r\nContent-Length: ${length}\r\n`)
  framed('a header without a colon', `X-A\r\nContent-Length: ${length}\r\n`)
  framed('a name with a space', `X A: b\r\nContent-Length: ${length}\r\n`)
  framed('a header of 20 kB', `X-A: ${'a'.repeat(20_000)}\r\nContent-Length: ${length}\r\n`)
  const many = Array.from({ length: 3_000 }, (_, at) => `X-${at}: a\r\n`).join('')
  framed('3,000 headers', `${many}Content-Length: ${length}\r\n`)
  addChunks({ framed, te, chunk })
  addLines({ add, text, sign, signed })
  return cases
}

type Framed = (name: string, framing: string, body?: (of: string) => string) => void

function addChunks(of: {
  framed: Framed
  te: string
  chunk: (body: string, size?: string) => string
}): void {
  const { framed, te, chunk } = of
  const size = (body: string) => Buffer.byteLength(body).toString(16)
  const sizes: Record<string, (body: string) => string> = {
    'in hexadecimal with 0x': (body) => `0x${size(body)}`,
    'with a sign': (body) => `+${size(body)}`,
    negative: (body) => `-${size(body)}`,
    'with a space before': (body) => ` ${size(body)}`,
    'beyond 64 bits': (body) => `10000000000000000${size(body)}`,
    'not a number': () => 'zz',
    empty: () => '',
    'too short': (body) => (Buffer.byteLength(body) - 10).toString(16),
    'with a line feed within': (body) => `${size(body)}\n`,
    'with an extension of 17 kB': (body) => `${size(body)};${'a'.repeat(17_000)}`,
    'with an extension and a bare line feed': (body) => `${size(body)};a\nb`,
  }
  for (const [name, write] of Object.entries(sizes)) {
    framed(`a chunk size ${name}`, te, (body) => `${chunk(body, write(body))}0\r\n\r\n`)
  }
  framed('a chunk that is never ended', te, (body) => `${size(body)}\r\n${body}`)
  framed('line feeds between chunks', te, (body) => `${size(body)}\n${body}\n0\n\n`)
  framed('17 kB of trailers', te, (body) => `${chunk(body)}0\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`)
  framed('a trailer without a colon', te, (body) => `${chunk(body)}0\r\nX-A\r\n\r\n`)
  framed('a null byte after a chunk', te, (body) => `${size(body)}\r\n${body}\0\r\n0\r\n\r\n`)
}

/** Request lines and hosts. */
function addLines(of: {
  add: (family: string, name: string, request: string) => void
  text: () => string
  sign: (body: string) => string
  signed: () => string
}): void {
  const { add, text, sign, signed } = of
  const lined = (name: string, line: string, host = 'Host: edge\r\n', hidden = signed()) => {
    const body = text()
    const rest = `${jsonType}${sign(body)}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    add('a request line', name, `${line}\r\n${host}${rest}${hidden}`)
  }
  const path = '/v1/rasp/ingest'
  lined('no host', `POST ${path} HTTP/1.1`, '', '')
  for (const version of ['HTTP/1.2', 'HTTP/9.9', 'HTTP/1', 'http/1.1', '']) {
    lined(`the version "${version}"`, `POST ${path} ${version}`)
  }
  for (const line of [
    ...[`post ${path} HTTP/1.1`, `POST\t${path}\tHTTP/1.1`, `POST ${path}\0 HTTP/1.1`],
    ...[`POST  HTTP/1.1`, `POST ${path} HTTP/1.1 x`, `X${'X'.repeat(300)} ${path} HTTP/1.1`],
    ...[`POST ${path} x HTTP/1.1`, `POST ${path}?${'a'.repeat(17_000)} HTTP/1.1`, ' ', '\0'],
  ]) {
    lined(JSON.stringify(line).slice(0, 40), line)
  }
  add('a request line', 'HTTP/2 in the clear', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${signed()}`)
  const hello = Buffer.from('16030100c8010000c40303', 'hex').toString('latin1')
  add('a request line', 'a TLS greeting', `${hello}${'\0'.repeat(200)}${signed()}`)
  add('a request line', 'a proxy’s header', `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${signed()}`)
}

/** A good request followed by other bytes, as one piece, and the body of the good one. */
export type Followed = { name: string; request: Buffer; body: string }

/**
 * Good requests followed by bad bytes, and one after a bad one. A stored event must not get a
 * refusal.
 */
export function makeFollowed(acme: Signer): Followed[] {
  const closing = (request: string) => request.replace('\r\n', '\r\nConnection: close\r\n')
  const followed: Followed[] = []
  const add = (name: string, write: (good: string) => string) => {
    const body = JSON.stringify(validBody(acme.tenantId))
    const good = toSigned(body, acme).toString('latin1')
    followed.push({ name, body, request: Buffer.from(write(good), 'latin1') })
  }
  const ends = { kept: (good: string) => good, closed: closing }
  for (const [name, end] of Object.entries(ends)) {
    add(`${name}, then line ends`, (good) => `${end(good)}\r\n\r\n`)
    add(`${name}, then garbage`, (good) => `${end(good)}garbage\r\n\r\n`)
    add(`${name}, then a null byte`, (good) => `${end(good)}\0`)
    add(`${name}, then a broken request`, (good) => `${end(good)}POST / HTTP/1.1\r\nX\r\n\r\n`)
    add(`${name}, then itself`, (good) => end(good) + good)
  }
  for (const version of ['1.0', '0.9', '2.0']) {
    add(
      `of HTTP/${version}, then itself`,
      (good) => good.replace('HTTP/1.1', `HTTP/${version}`) + good,
    )
  }
  add('behind one without a host', (good) => `GET /healthz HTTP/1.1\r\n\r\n${good}`)
  return followed
}

/** Content types and encodings that are refused before the body is read. */
export function makeEncodingCases(acme: Signer): HostileCase[] {
  const cases: HostileCase[] = []
  const text = () => JSON.stringify(validBody(acme.tenantId))
  const packers = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }
  for (const [coding, pack] of Object.entries(packers)) {
    for (const signed of ['packed', 'plain'] as const) {
      const plain = text()
      const packed = pack(plain)
      const signature = signBody(signed === 'packed' ? packed : plain, acme.secret)
      for (const [name, body] of [
        ['packed', packed],
        ['plain', plain],
      ] as const) {
        const request = toRequest(body, signature, `Content-Encoding: ${coding}\r\n`)
        const about = `${coding}, the ${signed} is signed, the ${name} sent`
        cases.push({ family: 'content encoding', name: about, request, expected: [415] })
      }
    }
  }
  // A bomb: 10 MB of zeros in 10 kB.
  const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024))
  const signature = signBody(bomb, acme.secret)
  for (const [name, coding] of [
    ['a bomb', 'gzip'],
    ['x-gzip', 'x-gzip'],
    ['upper case', 'GZIP'],
    ['zstd', 'zstd'],
    ['compress', 'compress'],
    ['two', 'identity, gzip'],
    ['two, the other way', 'gzip, identity'],
    ['identity twice', 'identity, identity'],
    ['unknown', 'x'],
    ['with a weight', 'identity;q=0'],
  ] as const) {
    const request = toRequest(bomb, signature, `Content-Encoding: ${coding}\r\n`)
    cases.push({ family: 'content encoding', name, request, expected: [415] })
  }
  for (const type of [
    ...[
      'text/plain',
      'text/json',
      'application/jsonp',
      'application/x-ndjson',
      'multipart/form-data',
    ],
    ...[
      'application/x-www-form-urlencoded',
      'text/plain; application/json',
      'application/cbor',
      '',
    ],
    ...['application/json5', 'application/xml', '*/*', 'json', 'application\tjson'],
  ]) {
    const request = toSigned(text(), acme).toString('latin1')
    cases.push({
      family: 'content type',
      name: JSON.stringify(type),
      expected: [415],
      request: Buffer.from(request.replace(jsonType, `Content-Type: ${type}\r\n`), 'latin1'),
    })
  }
  return cases
}
