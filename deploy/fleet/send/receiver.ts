/**
 * The one webhook receiver of the fleet, the drills and the tests: a server on this machine's
 * loopback that passes every request with its raw body to its owner, who answers it.
 */
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { createByteBuffer } from '#shared/io/process/byte-buffer.ts'

export type Listening = {
  port: number
  urlOf: (path: string) => string
  /** Connections ever accepted. */
  connections: () => number
  /** Connections open now. */
  open: () => number
  close: () => Promise<void>
}

export type HttpListening = Listening & { closeIdleConnections: () => void }

export type ReceivedRequest = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /** The number of its connection at the receiver, from 1. */
  connection: number
}

/** Answers one request. */
export type Respond = (request: ReceivedRequest, response: ServerResponse) => unknown

/** The secret of a webhook, and the public library that verifies with it. */
type Trusted = { secret: string; standard: Webhook }

const bodyBytesMax = 1024 * 1024

/** Lets a server listen on a free port, and counts its connections. */
export async function listenOnLoopback(server: Server): Promise<Listening> {
  const open = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    urlOf: (path) => `http://127.0.0.1:${port}/${path}`,
    connections: () => connections,
    open: () => open.size,
    close: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Starts a receiver; a request that breaks off, or whose body is too large, has no answer. */
export async function startReceiver(respond: Respond): Promise<HttpListening> {
  const numbers = new WeakMap<Socket, number>()
  let last = 0
  const server = createServer((incoming, response) => {
    readBody(incoming)
      .then((body) => {
        const { method = '', url: path = '', headers, socket } = incoming
        const connection = numbers.get(socket) ?? 0
        return respond({ method, path, headers, body, connection }, response)
      })
      .catch(() => response.destroy())
  })
  server.on('connection', (socket: Socket) => numbers.set(socket, ++last))
  // Longer than a sender keeps an idle connection, so that it never uses one that ends.
  server.keepAliveTimeout = 120_000
  const listening = await listenOnLoopback(server)
  return { ...listening, closeIdleConnections: () => server.closeIdleConnections() }
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const body = createByteBuffer(bodyBytesMax)
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    if (body.length() + chunk.length > bodyBytesMax) throw new Error('the delivery is too large')
    body.add(chunk)
  }
  return body.take()
}

/** Prepares a webhook secret, `whsec_...`, for `findFault`. */
export const toTrusted = (secret: string): Trusted => ({ secret, standard: new Webhook(secret) })

/**
 * Verifies a request as a tenant does: by the service's own function, by the headers, and by the
 * public library of Standard Webhooks, which refuses requests older than five minutes.
 * @returns the first fault in the order of a receiver's checks; null without a fault
 */
export function findFault(
  { method, headers, body }: Pick<ReceivedRequest, 'method' | 'headers' | 'body'>,
  trusted: Trusted | undefined,
): string | null {
  const header = (name: string) => {
    const value = headers[name]
    return typeof value === 'string' ? value : undefined
  }
  if (method !== 'POST') return 'method'
  if (trusted === undefined) return 'secret'
  if (!verifyDelivery(body, header('x-service-signature'), trusted.secret)) return 'signature'
  if (header('content-type') !== 'application/json') return 'content_type'
  if (header('x-service-event') !== 'risk.alert') return 'event'
  const id = header('x-service-delivery')
  if (id === undefined || id !== header('webhook-id')) return 'delivery_id'
  if (!/^[1-9]\d*$/.test(header('x-service-attempt') ?? '')) return 'attempt'
  if (header('webhook-timestamp') !== header('x-service-timestamp')) return 'timestamp'
  try {
    trusted.standard.verify(body.toString(), headers as Record<string, string>)
    return null
  } catch {
    return 'standard_signature'
  }
}
