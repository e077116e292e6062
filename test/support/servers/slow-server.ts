// A proxy on 127.0.0.1 that delays every answer of a server.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type SlowServer = { url: string; setLatency: (ms: number) => void; close: () => void }

/**
 * @param serverUrl of a server on this machine
 * @param latencyMs the delay of each of its answers
 */
export async function startSlowServer(serverUrl: string, latencyMs: number): Promise<SlowServer> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let heldMs = latencyMs
  const proxy = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    client.on('data', (chunk) => upstream.write(chunk))
    // Timers of equal length fire in the order in which they were set.
    upstream.on('data', (chunk) => setTimeout(() => client.write(chunk), heldMs))
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = String((proxy.address() as AddressInfo).port)
  return {
    url: url.href,
    setLatency: (ms) => {
      heldMs = ms
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    },
  }
}
