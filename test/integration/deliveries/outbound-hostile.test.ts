// Every kind of hostile answer of the fault drill, many at once and with a short time limit: the
// attempt has the expected end, in time, and reads little. The drill (`npm run faults -- hostile`)
// uses the real limit and checks the memory.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createOutbound, OutboundError } from '#shared/io/deliveries/outbound/outbound-client.ts'
import { hostileAnswers } from '../../faults/hostile/answers.ts'
import { createHostileServer } from '../../faults/hostile/hostile-server.ts'
import { waitFor } from '../../support/process/wait-for.ts'

const limitMs = 1_500
const connectTimeoutMs = 1_200
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
    const outbound = createOutbound({ resolve, trustedCertificates, connectTimeoutMs })
    const scheme = tls ? 'https' : 'http'
    const url = new URL(`${scheme}://receiver.test:${(server.address() as AddressInfo).port}/`)
    const attempt = async (n: number): Promise<number | string> => {
      const limit = new AbortController()
      const reason = new OutboundError('timeout', 'no answer in time')
      const timer = setTimeout(() => limit.abort(reason), limitMs)
      const rules = { environment: 'sandbox', allowPrivate: true } as const
      try {
        const target = { url, rules, owner: `tenant-${n}` }
        const connection = await outbound.connect(target, limit.signal)
        return (await connection.post(Buffer.from('{}'), {}, limit.signal)).status
      } catch (error) {
        return error instanceof OutboundError ? error.kind : String(error)
      } finally {
        clearTimeout(timer)
      }
    }
    // A slow core needs time for each handshake.
    const attempts = tls ? 8 : 20
    const begunMs = performance.now()
    const ended = await Promise.all(Array.from({ length: attempts }, (_, n) => attempt(n)))
    const tookMs = performance.now() - begunMs
    // At 200 ms each, seventeen of them take longer than this test's time limit.
    const expected = name === 'dripping 1xx answers' ? 'timeout' : ends
    expect(ended).toEqual(Array(attempts).fill(expected))
    expect(tookMs).toBeLessThan(limitMs + 2_000)
    if (slow) expect(tookMs).toBeGreaterThanOrEqual(limitMs - 10)
    outbound.close()
    await waitFor(() => expect(there.size).toBe(0))
    const mostRead = Math.max(...sockets.map((socket) => socket.bytesRead))
    expect(mostRead).toBeLessThan(192 * 1024)
  },
)
