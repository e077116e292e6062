/**
 * A TCP balancer, as a cluster has it: each new connection goes to the next backend that was ready
 * when it was polled last. It retries nothing.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type Backend = { port: number; isReady: () => Promise<boolean> }

export type Balancer<B extends Backend> = {
  url: string
  /** Whether new connections go to it. */
  serves: (backend: B) => boolean
  /** New connections so far. */
  connections: (backend: B) => number
  close: () => Promise<void>
}

/** @param pollMs time between two polls of readiness */
export async function startBalancer<B extends Backend>(
  backends: readonly B[],
  pollMs: number,
): Promise<Balancer<B>> {
  const states = backends.map((backend) => ({ backend, ready: false, connections: 0 }))
  const stateOf = (backend: B) => states.find((state) => state.backend === backend)!
  const poll = () =>
    Promise.all(
      states.map(async (state) => {
        state.ready = await state.backend.isReady()
      }),
    )
  await poll()
  const timer = setInterval(() => void poll(), pollMs)
  const sockets = new Set<Socket>()
  let next = 0
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const ready = states.filter((state) => state.ready)
    const state = ready[next++ % ready.length]
    if (state === undefined) {
      client.destroy()
      return
    }
    state.connections++
    const { port } = state.backend
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.end()
      })
      from.pipe(to)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serves: (backend) => stateOf(backend).ready,
    connections: (backend) => stateOf(backend).connections,
    close: async () => {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
