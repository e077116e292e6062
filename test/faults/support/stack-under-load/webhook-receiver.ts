/**
 * The backend of the tenants: verifies every webhook as a tenant does, and refuses a small share of
 * first attempts to cause retries. Checks that all requests for an alert are the same delivery with
 * the same bytes.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'
import { hashToUnit } from '../../../../deploy/fleet/phones/random.ts'

export type Received = {
  tenantId: string
  deliveryId: string
  bytes: string
  /** Digest of the alert, independent of the order of its fields. */
  facts: string
  requests: number
  /** Responses of 200. */
  accepted: number
}

export type WebhookReceiver = {
  /** The webhook URL of a tenant. */
  urlOf: (tenantId: string) => string
  setSecret: (tenantId: string, secret: string) => void
  /** By alert id. */
  received: Map<string, Received>
  /** Breaches: each must be empty. */
  forged: string[]
  otherDelivery: string[]
  otherBytes: string[]
  /** Requests, those answered with an error, those with a closed connection. */
  counts: { requests: number; failed: number; cut: number }
  close: () => Promise<void>
}

const failedShare = 0.02
const cutShare = 0.01
const slowMaxMs = 40

/** The digest of a value with its fields in alphabetical order. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(toSorted(value)).digest('base64')
}

function toSorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toSorted).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, one]) => `${JSON.stringify(name)}:${toSorted(one)}`).join()}}`
}

export async function startWebhookReceiver(seed: number): Promise<WebhookReceiver> {
  const webhooks = new Map<string, { secret: string; standard: Webhook }>()
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('error', () => undefined)
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const tenantId = (incoming.url ?? '').slice(1)
      receive(tenantId, incoming.headers, Buffer.concat(chunks), response)
    })
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const receiver: WebhookReceiver = {
    urlOf: (tenantId) => `http://127.0.0.1:${port}/${tenantId}`,
    setSecret: (tenantId, secret) => {
      webhooks.set(tenantId, { secret, standard: new Webhook(secret) })
    },
    received: new Map(),
    forged: [],
    otherDelivery: [],
    otherBytes: [],
    counts: { requests: 0, failed: 0, cut: 0 },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  function receive(
    tenantId: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
    response: ServerResponse,
  ): void {
    receiver.counts.requests++
    const deliveryId = String(headers['x-service-delivery'])
    if (!isGenuine(webhooks.get(tenantId), headers, body)) receiver.forged.push(deliveryId)
    const alert = JSON.parse(body.toString()) as { alert_id: string }
    const bytes = createHash('sha256').update(body).digest('base64')
    const known = receiver.received.get(alert.alert_id)
    if (known !== undefined && known.deliveryId !== deliveryId) {
      receiver.otherDelivery.push(`${alert.alert_id}: ${known.deliveryId}, then ${deliveryId}`)
    }
    if (known !== undefined && known.bytes !== bytes) receiver.otherBytes.push(alert.alert_id)
    const one = known ?? {
      tenantId,
      deliveryId,
      bytes,
      facts: digestOf(alert),
      requests: 0,
      accepted: 0,
    }
    receiver.received.set(alert.alert_id, one)
    one.requests++
    const share = one.requests === 1 ? hashToUnit(`${seed} ${alert.alert_id}`) : 1
    if (share < cutShare) {
      receiver.counts.cut++
      response.socket?.resetAndDestroy()
    } else if (share < cutShare + failedShare) {
      receiver.counts.failed++
      response.writeHead(500).end('not now')
    } else {
      response.on('finish', () => one.accepted++)
      setTimeout(() => response.writeHead(200).end('ok'), slowMaxMs * hashToUnit(deliveryId))
    }
  }
  return receiver
}

/** Verified as a tenant does: by the service's own function and by the public library. */
function isGenuine(
  webhook: { secret: string; standard: Webhook } | undefined,
  headers: IncomingHttpHeaders,
  body: Buffer,
): boolean {
  const signature = String(headers['x-service-signature'])
  if (webhook === undefined || !verifyDelivery(body, signature, webhook.secret)) return false
  if (headers['webhook-id'] !== headers['x-service-delivery']) return false
  try {
    webhook.standard.verify(body.toString(), headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
