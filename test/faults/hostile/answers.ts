/**
 * Hostile responses: floods, drips, silence and breaks, before, in and after the head, with and
 * without TLS. Each has its expected end, so that the test notices a receiver that did not attack.
 */
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'

export type HostileAnswer = {
  /** Handles a connection, for `tls` after the handshake. */
  onSocket: (socket: Socket) => void
  /** The recorded end of the attempt: its status, or the kind of the error. */
  ends: number | string
  tls?: true
  /** Whether it takes the whole time limit; the others end long before. */
  slow?: true
}

const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const endless = 'HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n'
/** Between two bytes of a drip, as documented. */
const dripMs = 200

const onRequest = (answer: (socket: Socket) => void) => (socket: Socket) => {
  socket.once('data', () => answer(socket))
}

const drip = (head: string, piece: string) =>
  onRequest((socket) => {
    socket.write(head)
    const timer = setInterval(() => socket.write(piece), dripMs)
    socket.on('close', () => clearInterval(timer))
  })

/** Writes for as long as the other side reads. */
function pour(socket: Socket, head: string, piece: string): void {
  const pieces = Buffer.from(piece.repeat(Math.ceil(32_768 / piece.length)))
  const more = () => {
    while (!socket.destroyed && socket.write(pieces));
  }
  socket.write(head)
  socket.on('drain', more)
  more()
}
const flood = (head: string, piece: string) => onRequest((socket) => pour(socket, head, piece))

const then = (head: string, end: (socket: Socket) => void) =>
  onRequest((socket) => socket.write(head, () => setTimeout(() => end(socket), 50)))

const answerWell = (socket: Socket) => {
  socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
}

const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024))

/** All hostile responses, by name. */
export const hostileAnswers: Record<string, HostileAnswer> = {
  'good answers, for comparison': { onSocket: answerWell, ends: 200 },
  'good answers through TLS': { onSocket: answerWell, tls: true, ends: 200 },
  'no answer': { onSocket: () => undefined, ends: 'timeout', slow: true },
  'a dripping status line': { onSocket: drip('HTTP/1.1 200 ', 'a'), ends: 'timeout', slow: true },
  'dripping headers': {
    onSocket: drip('HTTP/1.1 200 OK\r\nx: ', 'a'),
    ends: 'timeout',
    slow: true,
  },
  'dripping 1xx answers': {
    onSocket: drip('', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    ends: 'protocol',
  },
  'a dripping body': { onSocket: drip(endless, 'x'), ends: 200, slow: true },
  'dripping chunks': { onSocket: drip(chunked, '1\r\nx\r\n'), ends: 200, slow: true },
  'a dripping chunk extension': { onSocket: drip(`${chunked}1;`, 'x'), ends: 200, slow: true },
  'dripping trailers': { onSocket: drip(`${chunked}0\r\nx: `, 'x'), ends: 200, slow: true },
  'an endless status line': { onSocket: flood('HTTP/1.1 200 ', 'a'), ends: 'protocol' },
  'one endless header': { onSocket: flood('HTTP/1.1 200 OK\r\nx: ', 'a'), ends: 'protocol' },
  'endless headers': { onSocket: flood('HTTP/1.1 200 OK\r\n', 'x: y\r\n'), ends: 'protocol' },
  'endless 1xx answers': {
    onSocket: flood('', 'HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n'),
    ends: 'protocol',
  },
  'an endless body': { onSocket: flood(endless, 'x'), ends: 200 },
  'endless chunks of a byte': { onSocket: flood(chunked, '1\r\nx\r\n'), ends: 200 },
  'endless chunks': { onSocket: flood(chunked, `4000\r\n${'x'.repeat(0x4000)}\r\n`), ends: 200 },
  'an endless chunk extension': { onSocket: flood(`${chunked}1;`, 'x'), ends: 200 },
  'endless trailers': { onSocket: flood(`${chunked}0\r\n`, 'x: y\r\n'), ends: 200 },
  'one endless trailer': { onSocket: flood(`${chunked}0\r\nx: `, 'y'), ends: 200 },
  'a gzip bomb': {
    onSocket: onRequest((socket) => {
      const length = `content-length: ${bomb.length}`
      socket.end(
        Buffer.concat([
          Buffer.from(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n${length}\r\n\r\n`),
          bomb,
        ]),
      )
    }),
    ends: 200,
  },
  'bytes without end before the request': {
    onSocket: (socket) => pour(socket, '', 'HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n'),
    ends: 'protocol',
  },
  'bytes without end after the answer': {
    onSocket: flood('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', 'HTTP/1.1 200 OK\r\n'),
    ends: 200,
  },
  'a reset before the head': { onSocket: then('', (s) => s.resetAndDestroy()), ends: 'reset' },
  'a reset in the head': {
    onSocket: then('HTTP/1.1 200 OK\r\nx', (s) => s.resetAndDestroy()),
    ends: 'reset',
  },
  'a reset after the head': { onSocket: then(chunked, (s) => s.resetAndDestroy()), ends: 200 },
  'TLS that hangs': { onSocket: () => undefined, tls: true, ends: 'tls' },
  'TLS that is noise': {
    onSocket: (s) => pour(s, '', '\u0016\u0003\u0003~'),
    tls: true,
    ends: 'tls',
  },
  'TLS with a dripping body': { onSocket: drip(endless, 'x'), tls: true, ends: 200, slow: true },
  'TLS with an endless body': { onSocket: flood(endless, 'x'), tls: true, ends: 200 },
  'TLS with endless headers': {
    onSocket: flood('HTTP/1.1 200 OK\r\n', 'x: y\r\n'),
    tls: true,
    ends: 'protocol',
  },
  'TLS with endless trailers': {
    onSocket: flood(`${chunked}0\r\n`, 'x: y\r\n'),
    tls: true,
    ends: 200,
  },
}

/** Two kinds fail the TLS handshake: their servers do not speak TLS. */
export const hasHandshake = (name: string): boolean =>
  hostileAnswers[name]?.tls === true && !['TLS that hangs', 'TLS that is noise'].includes(name)
