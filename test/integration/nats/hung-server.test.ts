// What a server that hangs for a while, or sends what is not the protocol, does to a connection.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'

const patience = { pingEveryMs: 250, dialMaxMs: 400 }
const log = createLog('test', 'silent')

const closing: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function startServer(): Promise<TestNats> {
  const server = await startNats()
  closing.push(server.stop)
  return server
}

async function connectTo(url: string, name: string): Promise<Nats> {
  const nats = await connectNats({ url, patience }, name, log)
  closing.push(nats.close)
  return nats
}

it('after a server hung, a process has one connection and gets each message once', async () => {
  const server = await startServer()
  const nats = await connectTo(server.url, 'hung')
  const received: string[] = []
  nats.connection.subscribe('test.>', {
    callback: (_error, message) => received.push(message.string()),
  })
  await nats.connection.flush()
  const dials = countDials(nats)
  await server.kill('SIGSTOP')
  closing.push(() => server.kill('SIGCONT'))
  // More than sockets hold: a peer that hangs never reads it.
  for (let megabytes = 0; megabytes < 12; megabytes++) {
    nats.connection.publish('other', new Uint8Array(1_000_000))
  }
  // Attempts to connect run out of time while the server is silent.
  await until('three attempts to connect', () => dials() >= 3)
  await server.kill('SIGCONT')
  await until('a connection', () => nats.connected())
  // The server ends every connection that has not signed in within two seconds.
  const publisher = await connectTo(server.url, 'publisher')
  const sendUntilMs = performance.now() + 3_000
  const sent: string[] = []
  while (performance.now() < sendUntilMs) {
    sent.push(`message ${sent.length}`)
    publisher.connection.publish('test.one', sent.at(-1)!)
    await publisher.connection.flush()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await until('the last message', () => received.includes(sent.at(-1)!))
  expect(received).toEqual(sent)
})

it('of several servers, one that hangs or has died is not said to be cut off', async () => {
  const servers = [await startServer(), await startServer()]
  const { username, password } = new URL(servers[0]!.url)
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`)
  const lines: string[] = []
  const add = (fields: unknown, line?: string) => lines.push(line ?? String(fields))
  const told = { warn: add, info: add, error: add } as unknown as Log
  // The client itself takes longer to notice.
  const url = `nats://${username}:${password}@${hosts.join()}`
  const settings = { url, patience: { pingEveryMs: 600_000, dialMaxMs: 400 } }
  const nats = await connectNats(settings, 'told', told)
  closing.push(nats.close)
  const hung = servers.find(({ port }) => nats.connection.getServer() === `127.0.0.1:${port}`)!
  await hung.kill('SIGSTOP')
  closing.push(() => hung.kill('SIGCONT'))
  await until('it is said', () => lines.some((line) => line.includes('does not answer')))
  await until('another connection', () => nats.connected())
  const dials = countDials(nats)
  await Promise.all(servers.map((server) => server.kill('SIGKILL')))
  await until('many attempts to connect', () => dials() >= 40)
  expect(lines.filter((line) => /cut off|majority/.test(line))).toEqual([])
})

function countDials({ connection }: Nats): () => number {
  let dials = 0
  const watch = async () => {
    for await (const { type } of connection.status()) if (type === 'reconnecting') dials++
  }
  void watch()
  return () => dials
}

it('bytes that are not the protocol end the connection and are printed nowhere', async () => {
  const server = await startServer()
  const proxy = await startProxy(server.port)
  const url = new URL(server.url)
  url.port = `${proxy.port}`
  const nats = await connectTo(url.href, 'garbled')
  const received: string[] = []
  nats.connection.subscribe('test.>', {
    callback: (_error, message) => received.push(message.string()),
  })
  await nats.connection.flush()
  const printed = captureOutput()
  proxy.inject('HMSG test.secret-device 1 900 10\r\nbody-of-a-phone\r\nNATS/1.0\r\n')
  await until('another connection', () => proxy.connections() >= 2 && nats.connected())
  await until('a message over it', async () => {
    // What is sent while yet another connection takes the place of this one is lost.
    nats.connection.publish('test.one', 'after')
    await nats.connection.flush()
    return received.includes('after')
  })
  expect(printed()).not.toMatch(/secret-device|body-of-a-phone|NATS\/1\.0/)
  expect(printed()).toBe('')
})

/** All that this process prints: the client prints with `console`. */
function captureOutput(): () => string {
  const spies = [
    vi.spyOn(process.stdout, 'write').mockReturnValue(true),
    vi.spyOn(process.stderr, 'write').mockReturnValue(true),
    ...(['log', 'info', 'warn', 'error'] as const).map((name) =>
      vi.spyOn(console, name).mockReturnValue(undefined),
    ),
  ]
  closing.push(() => {
    for (const spy of spies) spy.mockRestore()
  })
  return () => spies.flatMap((spy) => spy.mock.calls.map((call) => call.join(' '))).join('\n')
}

/** Passes bytes between clients and a port, and sends more of them to the clients when told to. */
async function startProxy(to: number) {
  const { connect } = await import('node:net')
  const clients: Socket[] = []
  const listener = createServer((client) => {
    const upstream = connect(to, '127.0.0.1')
    clients.push(client)
    for (const one of [client, upstream]) one.on('error', () => undefined)
    client.on('close', () => upstream.destroy()).pipe(upstream)
    upstream.on('close', () => client.destroy()).pipe(client)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  closing.push(() => {
    for (const client of clients) client.destroy()
    listener.close()
  })
  return {
    port: (listener.address() as { port: number }).port,
    connections: () => clients.length,
    inject: (text: string) => clients.at(-1)!.write(text),
  }
}
