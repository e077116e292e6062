/**
 * Senders that take their time, ask for much and read nothing, or only hold a connection: how the
 * edge gets rid of them, and that it does.
 */
import { connect, type Socket } from 'node:net'
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  ingestHead,
  jsonType,
  type Signer,
  toRequest,
  validBody,
} from '../../support/telemetry/raw-submissions.ts'

export type SlowEnd = { kind: string; tookMs: number; status: number }

const dripMs = 500
/** Whoever is not cut off by then never will be: a whole request has ten seconds. */
const cutLimitMs = 20_000

type SlowKind = { kind: string; first: string; drip: (at: number) => string }

function toSlowKinds(acme: Signer): SlowKind[] {
  const body = JSON.stringify(validBody(acme.tenantId))
  const start = (more: string) =>
    `${ingestHead}${jsonType}X-Service-Signature: ${signBody(body, acme.secret)}\r\n${more}\r\n`
  const sized = start(`Content-Length: ${body.length}\r\n`)
  const chunked = start('Transfer-Encoding: chunked\r\n')
  return [
    { kind: 'a request line, byte by byte', first: '', drip: (at) => ingestHead[at % 20]! },
    { kind: 'half a header, then silence', first: `${ingestHead}X-A`, drip: () => '' },
    { kind: 'header after header', first: ingestHead, drip: (at) => `X-${at}: a\r\n` },
    { kind: 'half a body, then silence', first: sized + body.slice(0, 99), drip: () => '' },
    { kind: 'a body, byte by byte', first: sized, drip: (at) => body[at % body.length]! },
    { kind: 'all but the last byte', first: sized + body.slice(0, -1), drip: () => '' },
    { kind: 'chunk after chunk', first: chunked, drip: (at) => `1\r\n${body[at % 99]}\r\n` },
    { kind: 'a chunk size, digit by digit', first: chunked, drip: () => '0' },
    {
      kind: 'a refused body, byte by byte',
      first: `${ingestHead}Content-Length: 1000\r\n\r\n`,
      drip: () => 'x',
    },
  ]
}

/**
 * So many senders of each kind at once; resolves when every one is cut off, or too late.
 * @param signal ends those that are left
 */
export async function sendSlowly(
  port: number,
  acme: Signer,
  { each, signal }: { each: number; signal?: AbortSignal },
): Promise<SlowEnd[]> {
  const senders = toSlowKinds(acme).flatMap((kind) => Array.from({ length: each }, () => kind))
  const sockets = new Set<Socket>()
  signal?.addEventListener('abort', () => {
    for (const socket of sockets) socket.destroy()
  })
  return await Promise.all(senders.map((kind) => dawdle(port, kind, sockets)))
}

function dawdle(
  port: number,
  { kind, first, drip }: SlowKind,
  sockets: Set<Socket>,
): Promise<SlowEnd> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    sockets.add(socket)
    const startMs = performance.now()
    let text = ''
    let at = 0
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.write(first)
    const timer = setInterval(() => socket.write(drip(at++)), dripMs)
    const limit = setTimeout(() => socket.destroy(), cutLimitMs)
    socket.on('close', () => {
      clearInterval(timer)
      clearTimeout(limit)
      const status = Number(/^HTTP\/1.1 (\d{3})/.exec(text)?.[1] ?? 0)
      resolve({ kind, tookMs: performance.now() - startMs, status })
    })
  })
}

/** Strangers' places are bounded per address, so a crowd comes from several of this machine's. */
const addresses = 16

/** Opens connections on which nothing is ever sent; @returns how many the server holds open */
export async function openIdle(port: number, count: number) {
  const sockets: Socket[] = []
  let refused = 0
  for (let at = 0; at < count; at += 200) {
    await Promise.all(
      Array.from({ length: Math.min(200, count - at) }, async (_, n) => {
        const localAddress = `127.0.1.${1 + (n % addresses)}`
        const socket = connect({ port, host: '127.0.0.1', localAddress })
        sockets.push(socket)
        // Who does not read does not see that the connection has ended.
        socket.resume()
        await new Promise<void>((resolve) => {
          socket.once('connect', () => resolve())
          socket.once('error', () => {
            refused++
            resolve()
          })
        })
      }),
    )
  }
  return {
    open: () => sockets.filter((socket) => socket.readyState === 'open').length,
    refused,
    close: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * Requests without end by a client that reads no answer: the server has to stop reading them.
 * @returns the bytes that it took before it did, at most `bytesMax`
 */
export async function neverRead(port: number, bytesMax: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.pause()
  const requests = Buffer.concat(Array.from({ length: 200 }, () => toRequest('{}', null)))
  const closed = new Promise<false>((resolve) => socket.once('close', () => resolve(false)))
  let taken = 0
  while (taken < bytesMax) {
    const written = new Promise<true>((resolve) => socket.write(requests, () => resolve(true)))
    const silence = new Promise<false>((resolve) => setTimeout(resolve, 2_000, false))
    if (!(await Promise.race([written, closed, silence]))) break
    taken += requests.length
  }
  socket.destroy()
  return taken
}
