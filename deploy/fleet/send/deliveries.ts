/**
 * Webhooks as a tenant's backend receives them: verified, answered at once unless a fault is asked
 * for, and recorded for the check at the end.
 */
import type { ServerResponse } from 'node:http'
import {
  findFault,
  type Listening,
  type ReceivedRequest,
  startReceiver,
  toTrusted,
} from './receiver.ts'

export type ReceivedDelivery = {
  deliveryId: string
  alertId: string
  /** The body of the first arrival, as text. */
  body: string
  /** First arrival, in ms from the start of the run. */
  firstMs: number
  /** Number of arrivals. */
  arrivals: number
  /** How many of them were failed on purpose. */
  faults: number
  /** Responses of 200 that were passed to the socket. */
  accepted: number
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

export type DeliveryReceiver = Pick<Listening, 'urlOf' | 'close'> & {
  received: Received
  /** Sets the secret that deliveries to a path are signed with. */
  trust: (path: string, webhookSecret: string) => void
}

/** How a genuine delivery is answered: 200, 500, or with a closed connection. */
export type Reply = 'accept' | 'refuse' | 'cut'

export type DeliveryOptions = {
  reply: (delivery: ReceivedDelivery) => Reply | Promise<Reply>
  /** Monotonic ms from the start of the run. */
  sinceStartMs: () => number
}

/** Starts a receiver that trusts no delivery yet. */
export async function receiveDeliveries(options: DeliveryOptions): Promise<DeliveryReceiver> {
  const trusted = new Map<string, ReturnType<typeof toTrusted>>()
  const received: Received = {
    deliveries: new Map(),
    requests: 0,
    verified: 0,
    refused: {},
    faults: 0,
  }
  const { urlOf, close } = await startReceiver(async (request, response) => {
    received.requests++
    const fault = findFault(request, trusted.get(request.path.slice(1)))
    if (fault !== null) {
      received.refused[fault] = (received.refused[fault] ?? 0) + 1
      end(response, 401)
      return
    }
    received.verified++
    const delivery = record(received, request, options.sinceStartMs())
    const reply = await options.reply(delivery)
    if (reply === 'accept') {
      response.on('finish', () => delivery.accepted++)
      end(response, 200)
      return
    }
    delivery.faults++
    received.faults++
    if (reply === 'refuse') end(response, 500)
    else response.socket?.resetAndDestroy()
  })
  return {
    urlOf,
    close,
    received,
    trust: (path, webhookSecret) => void trusted.set(path, toTrusted(webhookSecret)),
  }
}

const end = (response: ServerResponse, status: number) =>
  response.writeHead(status, { 'content-length': '0' }).end()

function record(
  { deliveries }: Received,
  { headers, body }: ReceivedRequest,
  atMs: number,
): ReceivedDelivery {
  const deliveryId = String(headers['x-service-delivery'])
  const text = body.toString()
  const known = deliveries.get(deliveryId)
  if (known !== undefined) {
    known.arrivals++
    known.changed ||= known.body !== text
    return known
  }
  const first: ReceivedDelivery = {
    deliveryId,
    alertId: toAlertId(text),
    body: text,
    firstMs: atMs,
    arrivals: 1,
    faults: 0,
    accepted: 0,
    changed: false,
  }
  deliveries.set(deliveryId, first)
  return first
}

function toAlertId(text: string): string {
  try {
    return String((JSON.parse(text) as { alert_id?: unknown }).alert_id)
  } catch {
    return ''
  }
}
