/**
 * The faulty receiver, in its own process so that the drill does not slow it down. It verifies
 * every request as a tenant does, responds according to the seed, and writes one line of JSON per
 * request when it has ended.
 */
import { createHash } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { hashToUnit } from '../../../deploy/fleet/phones/random.ts'
import { findFault, listenOnLoopback, toTrusted } from '../../../deploy/fleet/send/receiver.ts'
import { actStatus, chooseAct, type FaultShares, type ReceiverAct } from './receiver-faults.ts'

export type ReceiverOrders = {
  seed: number
  shares: FaultShares
  /** The range of a slow response. */
  slowMs: [number, number]
  /** Webhook secrets by tenant; a tenant's path is `/<its id>`. */
  secrets: Record<string, string>
  /** The file for the lines. */
  file: string
}

/** One request, as the receiver saw it. Times are of the wall clock, which processes share. */
export type SeenRequest = {
  /** The order of arrival, from 1. */
  place: number
  deliveryId: string
  attempt: number
  /** Base64 of the body; null when it was not read. */
  sha256: string | null
  /** Whether both signatures verify; null when the body was not read. */
  genuine: boolean | null
  act: ReceiverAct
  /** Whether its connection had carried an earlier request. */
  reused: boolean
  arrivedMs: number
  endedMs: number
  /** The status of the response whose head was written in full. */
  status: number | null
  /** Whether the whole response was passed to the socket. */
  complete: boolean
}

export type ReceiverProgress = {
  /** The order of this report, from 1. */
  place: number
  /** Requests so far. */
  requests: number
  /** Deliveries that got a complete 2xx. */
  delivered: number
  /** Connections that are open now. */
  connections: number
}

export type ReceiverReport =
  | { kind: 'listening'; port: number }
  | ({ kind: 'progress' } & ReceiverProgress)
  | { kind: 'done' }

const reportEveryMs = 20

type Receiving = {
  orders: ReceiverOrders
  trusted: Map<string, ReturnType<typeof toTrusted>>
  out: WriteStream
  sent: Map<string, number>
  delivered: Set<string>
  /** Connections that have carried a request. */
  used: WeakSet<object>
  requests: number
}

const report = (message: ReceiverReport) => process.send?.(message)

function receive(to: Receiving, incoming: IncomingMessage, response: ServerResponse): void {
  const deliveryId = String(incoming.headers['x-service-delivery'])
  const n = (to.sent.get(deliveryId) ?? 0) + 1
  to.sent.set(deliveryId, n)
  const seen: SeenRequest = {
    place: ++to.requests,
    deliveryId,
    attempt: Number(incoming.headers['x-service-attempt']),
    sha256: null,
    genuine: null,
    act: chooseAct(to.orders.shares, to.orders.seed, { deliveryId, n }),
    reused: to.used.has(incoming.socket),
    arrivedMs: Date.now(),
    endedMs: 0,
    status: null,
    complete: false,
  }
  to.used.add(incoming.socket)
  response.on('finish', () => {
    seen.complete = true
    seen.status = response.statusCode
    seen.endedMs = Date.now()
    if (seen.status === 200) to.delivered.add(deliveryId)
  })
  response.on('close', () => {
    if (!seen.complete) seen.endedMs = Date.now()
    to.out.write(`${JSON.stringify(seen)}\n`)
  })
  incoming.on('error', () => undefined)
  if (seen.act === 'reset at head') {
    incoming.socket.resetAndDestroy()
    return
  }
  const chunks: Buffer[] = []
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
  incoming.on('end', () => {
    const body = Buffer.concat(chunks)
    seen.sha256 = createHash('sha256').update(body).digest('base64')
    const { method = '', headers, url = '' } = incoming
    seen.genuine = findFault({ method, headers, body }, to.trusted.get(url.slice(1))) === null
    answer(to.orders, seen, response)
  })
}

function answer({ slowMs, seed }: ReceiverOrders, seen: SeenRequest, to: ServerResponse): void {
  const { act } = seen
  const socket = to.socket
  if (act === 'hang' || socket === null) return
  if (act === 'reset at body') {
    socket.resetAndDestroy()
  } else if (act === 'half a head') {
    socket.end('HTTP/1.1 200 OK\r\nContent-Le', () => socket.destroy())
  } else if (act === 'cut answer') {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it', () => {
      seen.status = 200
      socket.destroy()
    })
  } else if (act === 'slow') {
    const [from, upTo] = slowMs
    const share = hashToUnit(`slow ${seed} ${seen.deliveryId} ${seen.place}`)
    const end = () => {
      if (!socket.destroyed) to.writeHead(200).end('ok')
    }
    setTimeout(end, from + (upTo - from) * share)
  } else {
    if (act.endsWith('Retry-After')) to.setHeader('retry-after', '7')
    to.writeHead(actStatus[act]!).end('an answer')
  }
}

async function serve(orders: ReceiverOrders): Promise<void> {
  const to: Receiving = {
    orders,
    trusted: new Map(
      Object.entries(orders.secrets).map(([tenantId, secret]) => [tenantId, toTrusted(secret)]),
    ),
    out: createWriteStream(orders.file),
    sent: new Map(),
    delivered: new Set(),
    used: new WeakSet(),
    requests: 0,
  }
  const server = createServer((incoming, response) => receive(to, incoming, response))
  // Longer than any pause of the sender, so it never closes an idle connection that the sender
  // uses.
  server.keepAliveTimeout = 120_000
  const listening = await listenOnLoopback(server)
  let place = 0
  const timer = setInterval(() => {
    const { requests, delivered } = to
    const connections = listening.open()
    place += 1
    report({ kind: 'progress', place, requests, delivered: delivered.size, connections })
  }, reportEveryMs)
  process.once('message', async () => {
    clearInterval(timer)
    await listening.close()
    await new Promise((resolve) => to.out.end(resolve))
    report({ kind: 'done' })
    process.disconnect()
  })
  report({ kind: 'listening', port: listening.port })
}

if (process.send !== undefined && process.argv[2] === 'serve') {
  // Ends with its parent.
  process.on('disconnect', () => process.exit())
  process.once('message', (orders) => void serve(orders as ReceiverOrders))
}
