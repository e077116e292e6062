// A webhook receiver for tests: a real HTTP server on loopback that keeps every request with its
// raw body and answers as the test decides, and a raw TCP server for answers that no HTTP library
// sends.
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'

export type ReceivedRequest = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /** The number of its connection at the receiver, from 1. */
  connection: number
  atMs: number
}

/** Answers one request; its n counts the requests of the same delivery id, from 1. */
export type Answer = (response: ServerResponse, request: ReceivedRequest, n: number) => void

export type Receiver = {
  /** With a path: usable as a webhook URL. */
  url: string
  port: number
  requests: ReceivedRequest[]
  /** Connections ever accepted. */
  connections: () => number
  /** Connections open now. */
  open: () => number
  setAnswer: (answer: Answer) => void
  server: Server
  close: () => Promise<void>
}

const answerOk: Answer = (response) => response.writeHead(200).end('ok')

/** Starts a receiver that answers 200 until the test changes it. */
export async function startReceiver(answer: Answer = answerOk): Promise<Receiver> {
  let present = answer
  const requests: ReceivedRequest[] = []
  const numbers = new WeakMap<Socket, number>()
  const seen = new Map<string, number>()
  const open = new Set<Socket>()
  let connections = 0
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const request: ReceivedRequest = {
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        headers: incoming.headers,
        body: Buffer.concat(chunks),
        connection: numbers.get(incoming.socket) ?? 0,
        atMs: performance.now(),
      }
      const id = String(incoming.headers['x-service-delivery'])
      const n = (seen.get(id) ?? 0) + 1
      seen.set(id, n)
      requests.push(request)
      present(response, request, n)
    })
  })
  server.on('connection', (socket) => {
    numbers.set(socket, ++connections)
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    requests,
    connections: () => connections,
    open: () => open.size,
    setAnswer: (next) => {
      present = next
    },
    server,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type RawReceiver = {
  url: string
  port: number
  connections: () => number
  open: () => number
  close: () => Promise<void>
}

/** Starts a TCP server that passes every connection to the test. */
export async function startRawReceiver(onSocket: (socket: Socket) => void): Promise<RawReceiver> {
  const open = new Set<Socket>()
  let connections = 0
  const server = createTcpServer((socket) => {
    connections += 1
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => open.delete(socket))
    onSocket(socket)
    // Unread bytes would hide the end of the connection.
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    connections: () => connections,
    open: () => open.size,
    close: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
