/** Clients that send slowly, read nothing, or only hold a connection: the edge must close them. */
import { connect, type Socket } from 'node:net'
import { signBody } from '#shared/core/telemetry/signature.ts'
import {
  ingestHead,
  jsonType,
  type Signer,
  toRequest,
  validBody,
} from '../../support/telemetry/raw-submissions.ts'

const dripMs = 500

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

/** One sender of each kind, at once. @returns the status that each got before the edge hung up */
export async function sendSlowly(port: number, acme: Signer): Promise<Record<string, number>> {
  const ends = await Promise.all(
    toSlowKinds(acme).map(async (slow) => [slow.kind, await sendUntilCut(port, slow)] as const),
  )
  return Object.fromEntries(ends)
}

function sendUntilCut(port: number, { first, drip }: SlowKind): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let text = ''
    let at = 0
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.write(first)
    const timer = setInterval(() => socket.write(drip(at++)), dripMs)
    socket.on('close', () => {
      clearInterval(timer)
      resolve(Number(/^HTTP\/1.1 (\d{3})/.exec(text)?.[1] ?? 0))
    })
  })
}

/** Connections without a signature are bounded per address, so these come from several. */
const addresses = 16

/** Opens connections and sends nothing. */
export async function openIdle(port: number, count: number) {
  const sockets: Socket[] = []
  let refused = 0
  for (let at = 0; at < count; at += 200) {
    await Promise.all(
      Array.from({ length: Math.min(200, count - at) }, async (_, n) => {
        const localAddress = `127.0.1.${1 + (n % addresses)}`
        const socket = connect({ port, host: '127.0.0.1', localAddress })
        sockets.push(socket)
        // Without reading, the end of the connection is not seen.
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
 * Sends requests without end and reads no response: the server has to stop reading.
 * @returns the bytes that the server read, at most `bytesMax`
 */
export async function neverRead(port: number, bytesMax: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.pause()
  const requests = Buffer.concat(Array.from({ length: 200 }, () => toRequest('{}', null)))
  const closed = new Promise<false>((resolve) => socket.once('close', () => resolve(false)))
  let sentBytes = 0
  while (sentBytes < bytesMax) {
    const written = new Promise<boolean>((resolve) =>
      socket.write(requests, (error) => resolve(error === null || error === undefined)),
    )
    const silence = new Promise<false>((resolve) => setTimeout(resolve, 2_000, false))
    if (!(await Promise.race([written, closed, silence]))) break
    sentBytes += requests.length
  }
  socket.destroy()
  return sentBytes
}
