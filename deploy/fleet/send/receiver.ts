/**
 * A webhook receiver like a tenant's backend: it verifies both signatures of every delivery over
 * the raw bytes, answers at once, and records requests for the check at the end. It can answer 500
 * to a share of the deliveries, so that they are retried.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { standardWebhooksKey, verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { createByteBuffer } from '#shared/io/process/byte-buffer.ts'
import type { Random } from '../phones/random.ts'

export type ReceivedDelivery = {
  deliveryId: string
  alertId: string
  /** The body of the first arrival, as text. */
  body: string
  /** First arrival, in ms from the start of the run. */
  firstMs: number
  /** Number of arrivals. */
  arrivals: number
  /** How many of them were answered 500 on purpose. */
  faults: number
  /** Whether a later arrival had other bytes than the first. */
  changed: boolean
}

export type Received = {
  /** Genuine deliveries by their id. */
  deliveries: Map<string, ReceivedDelivery>
  /** All requests, genuine or not. */
  requests: number
  /** Genuine requests. */
  verified: number
  /** Counts of requests that were not genuine, by reason. */
  refused: Record<string, number>
  faults: number
}

export type Receiver = {
  url: string
  received: Received
  /** Sets the secret that deliveries are signed with. */
  trust(webhookSecret: string): void
  close(): Promise<void>
}

type ReceiverOptions = {
  /** Share of deliveries that are answered 500. */
  faultShare: number
  random: Random
  /** Wall clock, for the age of a signature. */
  nowMs: () => number
  /** Monotonic ms from the start of the run. */
  sinceStartMs: () => number
}

const bodyBytesMax = 1024 * 1024

/** Standard Webhooks: a receiver refuses requests older than five minutes. */
const timestampToleranceMs = 5 * 60_000

/** Listens on a free port of this machine's loopback. */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const received: Received = {
    deliveries: new Map(),
    requests: 0,
    verified: 0,
    refused: {},
    faults: 0,
  }
  let secret = ''
  const server = createServer((request, response) => {
    void readBody(request)
      .then((body) => respond(response, receive(options, received, secret, request, body)))
      .catch(() => response.destroy())
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/webhooks/risk`,
    received,
    trust: (webhookSecret) => {
      secret = webhookSecret
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const body = createByteBuffer(bodyBytesMax)
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (body.length() + chunk.length > bodyBytesMax) throw new Error('the delivery is too large')
    body.add(chunk)
  }
  return body.take()
}

function respond(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': '0' })
  response.end()
}

function receive(
  options: ReceiverOptions,
  received: Received,
  secret: string,
  request: IncomingMessage,
  body: Buffer,
): number {
  received.requests++
  const fault = findFault(request, body, secret, options.nowMs())
  if (fault !== null) {
    received.refused[fault] = (received.refused[fault] ?? 0) + 1
    return 401
  }
  received.verified++
  const delivery = record(received, request, body, options.sinceStartMs())
  if (options.faultShare > 0 && options.random.chance(options.faultShare)) {
    delivery.faults++
    received.faults++
    return 500
  }
  return 200
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}

/** The first fault of a request, in the order of a receiver's checks; null without a fault. */
function findFault(
  request: IncomingMessage,
  body: Buffer,
  secret: string,
  nowMs: number,
): string | null {
  if (request.method !== 'POST') return 'method'
  if (!verifyDelivery(body, header(request, 'x-service-signature'), secret)) return 'signature'
  if (header(request, 'content-type') !== 'application/json') return 'content_type'
  if (header(request, 'x-service-event') !== 'risk.alert') return 'event'
  const id = header(request, 'x-service-delivery')
  if (id === undefined || id !== header(request, 'webhook-id')) return 'delivery_id'
  if (!/^[1-9]\d*$/.test(header(request, 'x-service-attempt') ?? '')) return 'attempt'
  const timestamp = header(request, 'webhook-timestamp') ?? ''
  if (timestamp !== header(request, 'x-service-timestamp')) return 'timestamp'
  const ageMs = Math.abs(nowMs - Number(timestamp) * 1000)
  if (!/^\d+$/.test(timestamp) || ageMs > timestampToleranceMs) return 'timestamp'
  const given = header(request, 'webhook-signature')
  return isStandardSignature(given, `${id}.${timestamp}.`, body, secret)
    ? null
    : 'standard_signature'
}

/** The check of the Standard Webhooks specification: any of the listed v1 signatures may match. */
function isStandardSignature(
  given: string | undefined,
  prefix: string,
  body: Buffer,
  secret: string,
): boolean {
  const expected = createHmac('sha256', standardWebhooksKey(secret))
    .update(prefix)
    .update(body)
    .digest()
  return (given ?? '').split(' ').some((entry) => {
    const signature = Buffer.from(entry.replace(/^v1,/, ''), 'base64')
    if (!entry.startsWith('v1,') || signature.length !== expected.length) return false
    return timingSafeEqual(signature, expected)
  })
}

function record(
  received: Received,
  request: IncomingMessage,
  body: Buffer,
  atMs: number,
): ReceivedDelivery {
  const deliveryId = header(request, 'x-service-delivery')!
  const text = body.toString('utf8')
  const known = received.deliveries.get(deliveryId)
  if (known !== undefined) {
    known.arrivals++
    known.changed ||= known.body !== text
    return known
  }
  const first: ReceivedDelivery = {
    deliveryId,
    alertId: alertIdOf(text),
    body: text,
    firstMs: atMs,
    arrivals: 1,
    faults: 0,
    changed: false,
  }
  received.deliveries.set(deliveryId, first)
  return first
}

function alertIdOf(text: string): string {
  try {
    return String((JSON.parse(text) as { alert_id?: unknown }).alert_id)
  } catch {
    return ''
  }
}
