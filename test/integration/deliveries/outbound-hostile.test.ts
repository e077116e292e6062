// Every kind of hostile answer, many at once and with a short time limit: the attempt has the
// expected end, at its limit or by itself, and reads little.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createOutbound, OutboundError } from '#shared/io/deliveries/outbound/outbound-client.ts'
import { hostileAnswers } from '../../faults/hostile/answers.ts'
import { createHostileServer } from '../../faults/hostile/hostile-server.ts'
import { afterTurns } from '../../support/process/turns.ts'
import { waitFor } from '../../support/process/wait-for.ts'

/** Of attempts that take all of it. */
const limitMs = 1_500
/** Of those that end by themselves, on any machine. */
const patientMs = 60_000
const trustedCertificates = readFileSync(
  new URL('../../vectors/receiver-cert.pem', import.meta.url),
  'utf8',
)

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close()
})

/** The opened sockets, and the bytes that the runtime counts for them. */
function watchDialled(): Socket[] {
  const sockets: Socket[] = []
  const onSocket = (message: unknown) => sockets.push((message as { socket: Socket }).socket)
  subscribe('net.client.socket', onSocket)
  closers.push(() => unsubscribe('net.client.socket', onSocket))
  return sockets
}

test.each(Object.entries(hostileAnswers))(
  '%s, many at once: each attempt has the expected end',
  async (name, { ends, tls, slow }) => {
    const server = createHostileServer(name).listen(0, '127.0.0.1')
    const there = new Set<Socket>()
    server.on('connection', (socket: Socket) => {
      there.add(socket)
      socket.on('close', () => there.delete(socket))
    })
    closers.push(() => {
      for (const socket of there) socket.destroy()
      server.close()
    })
    await once(server, 'listening')
    const sockets = watchDialled()
    const resolve = async () => ['127.0.0.1']
    const connectTimeoutMs = name === 'TLS that hangs' ? limitMs : patientMs
    const outbound = createOutbound({ resolve, trustedCertificates, connectTimeoutMs })
    const scheme = tls ? 'https' : 'http'
    const url = new URL(`${scheme}://receiver.test:${(server.address() as AddressInfo).port}/`)
    const attempt = async (n: number): Promise<number | string> => {
      const limit = new AbortController()
      const reason = new OutboundError('timeout', 'no answer in time')
      const stop = afterTurns(slow ? limitMs : patientMs, () => limit.abort(reason))
      const rules = { environment: 'sandbox', allowPrivate: true } as const
      try {
        const target = { url, rules, owner: `tenant-${n}` }
        const connection = await outbound.connect(target, limit.signal)
        return (await connection.post(Buffer.from('{}'), {}, limit.signal)).status
      } catch (error) {
        return error instanceof OutboundError ? error.kind : String(error)
      } finally {
        stop()
      }
    }
    // A slow core needs time for each handshake.
    const attempts = tls ? 8 : 20
    const begunMs = performance.now()
    const ended = await Promise.all(Array.from({ length: attempts }, (_, n) => attempt(n)))
    const tookMs = performance.now() - begunMs
    expect(ended).toEqual(Array(attempts).fill(ends))
    if (slow) expect(tookMs).toBeGreaterThanOrEqual(limitMs - 10)
    outbound.close()
    await waitFor(() => expect(there.size).toBe(0))
    const mostRead = Math.max(...sockets.map((socket) => socket.bytesRead))
    expect(mostRead).toBeLessThan(192 * 1024)
  },
)
