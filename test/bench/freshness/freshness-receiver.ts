/**
 * The tenant's backend in the freshness benchmark, in its own process: answers each webhook at
 * once, records when its first byte came, and verifies it over the received bytes.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyDelivery } from '#shared/core/deliveries/webhook-signing.ts'

/** Sent once the tenant exists, and to get the records. */
export type ReceiverOrder = { secret: string } | 'count' | 'report'

export type ReceivedAlert = {
  alertId: string
  sessionId: string
  action: string
  /** When the scorer raised it, and when its webhook came, in ms since 1970. */
  createdMs: number
  arrivedMs: number
}
export type ReceiverReport = { alerts: ReceivedAlert[]; unverified: number }

type AlertBody = {
  alert_id: string
  created_at: string
  decision: { action: string }
  entity: { session: { session_id: string } }
}

let secret = ''
let unverified = 0
const alerts: ReceivedAlert[] = []

const server = createServer((request, response) => {
  const arrivedMs = performance.timeOrigin + performance.now()
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    response.end('ok')
    const body = Buffer.concat(chunks)
    const signature = request.headers['x-service-signature']
    if (!verifyDelivery(body, String(signature ?? ''), secret)) unverified++
    else alerts.push(toReceived(JSON.parse(body.toString()) as AlertBody, arrivedMs))
  })
})

function toReceived(alert: AlertBody, arrivedMs: number): ReceivedAlert {
  return {
    alertId: alert.alert_id,
    sessionId: alert.entity.session.session_id,
    action: alert.decision.action,
    createdMs: Date.parse(alert.created_at),
    arrivedMs,
  }
}

server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
process.on('message', (order: ReceiverOrder) => {
  if (order === 'report') process.send!({ alerts, unverified } satisfies ReceiverReport)
  else if (order === 'count') process.send!(alerts.length + unverified)
  else {
    secret = order.secret
    process.send!(null)
  }
})
process.on('disconnect', () => process.exit(0))
