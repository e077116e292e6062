/**
 * The process that sends to hostile receivers, with the code and the time limits of the delivery
 * process. It warms up on a good receiver, makes all attempts at once, and reports their ends and
 * the growth of its memory.
 */
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { webhookTimeoutMs } from '#shared/core/base/limits/deliveries.ts'
import { toWebhookKeys } from '#shared/core/deliveries/webhook-signing.ts'
import { createOutbound, type Outbound } from '#shared/io/deliveries/outbound/outbound-client.ts'
import {
  type AttemptDeps,
  attemptDelivery,
  type FreshClaim,
} from '../../../services/delivery/send/attempt-delivery.ts'
import type { FreshWebhook } from '../../../services/delivery/send/read-webhook.ts'
import { createFindTarget } from '../../../services/delivery/send/webhook-targets.ts'
import { createStopSignal } from '../../../services/delivery/stop-signal.ts'

export type SenderOrders = {
  /** Number of concurrent attempts. */
  count: number
  /** The URL of the good receiver. */
  warmUp: string
  /** How often it sends `count` concurrent requests to it before the measurement. */
  warmUps: number
  /** Attempts go to these in rotation. */
  urls: string[]
}

export type SenderReport = {
  attempts: { url: string; ended: string; durationMs: number }[]
  /** Highest resident memory during the attempts minus that before them, in bytes. */
  grownBytes: number
  /** The most bytes read from one socket, TLS records included. */
  socketBytesMax: number
  /** The longest time in which the event loop was blocked. */
  blockedMsMax: number
}

const sampleMs = 50
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const body = Buffer.from(JSON.stringify({ alert_id: 'alr_1', padding: 'x'.repeat(1_000) }))

const trustedCertificates = readFileSync(
  new URL('../../vectors/receiver-cert.pem', import.meta.url),
  'utf8',
)
const create = () => createOutbound({ resolve: async () => ['127.0.0.1'], trustedCertificates })
const monotonicMs = () => performance.now()

function toDeps(outbound: Outbound, webhook: FreshWebhook): AttemptDeps {
  return {
    connect: outbound.connect,
    readWebhook: async () => webhook,
    openKeys: toWebhookKeys,
    findTarget: createFindTarget({ allowPrivate: true }),
    nowMs: Date.now,
    monotonicMs,
    random: Math.random,
    recordAttempt: () => false,
    onSend: () => undefined,
    onRedial: () => undefined,
    onRelease: (_claimed, why, error) => {
      throw error ?? new Error(`nothing was sent: ${why}`)
    },
    timeoutMs: webhookTimeoutMs,
  }
}

async function attempt(
  outbound: Outbound,
  url: string,
  n: number,
): Promise<SenderReport['attempts'][number]> {
  const begunMs = monotonicMs()
  const webhook: FreshWebhook = {
    environment: 'sandbox',
    suspended: false,
    state: 'on',
    url,
    sealedSecret: secret,
    sealedBefore: null,
    signUntilMs: Number.POSITIVE_INFINITY,
  }
  const claimed: FreshClaim = {
    tenantId: `tenant-${n}`,
    deliveryId: `dlv_${n}`,
    createdAt: new Date().toISOString(),
    alertId: `alr_${n}`,
    claim: 'claim',
    event: 'risk.alert',
    body,
    traceparent: null,
    attempts: 0,
    attemptsBefore: 0,
    probe: false,
    webhook,
    claimedUntilMs: begunMs + 60_000,
    createdAtMs: begunMs,
  }
  const deps = toDeps(outbound, webhook)
  const outcome = await attemptDelivery(claimed, deps, createStopSignal())
  const made = outcome.attempt
  const ended = String(made?.status ?? made?.errorKind ?? 'released')
  return { url, ended, durationMs: monotonicMs() - begunMs }
}

/** Counts the bytes that each socket reads. @returns the current maximum */
function watchSockets(): () => number {
  const sockets = new Set<Socket>()
  let most = 0
  subscribe('net.client.socket', (message) => {
    const { socket } = message as { socket: Socket }
    sockets.add(socket)
    socket.once('close', () => {
      most = Math.max(most, socket.bytesRead)
      sockets.delete(socket)
    })
  })
  return () => Math.max(most, ...[...sockets].map((socket) => socket.bytesRead))
}

async function send({ count, warmUp, warmUps, urls }: SenderOrders): Promise<SenderReport> {
  const warming = create()
  for (let round = 0; round < warmUps; round++) {
    await Promise.all(Array.from({ length: count }, (_, n) => attempt(warming, warmUp, n)))
  }
  warming.close()
  await pause(500)
  const outbound = create()
  const readBytes = watchSockets()
  const baseline = process.memoryUsage.rss()
  const peakBefore = process.resourceUsage().maxRSS * 1_024
  let most = baseline
  let blockedMsMax = 0
  let sampledMs = monotonicMs()
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
    blockedMsMax = Math.max(blockedMsMax, monotonicMs() - sampledMs - sampleMs)
    sampledMs = monotonicMs()
  }, sampleMs)
  const attempts = await Promise.all(
    Array.from({ length: count }, (_, n) => attempt(outbound, urls[n % urls.length]!, n)),
  )
  // Work after the end of the attempts also counts.
  await pause(1_000)
  clearInterval(timer)
  // The kernel's peak includes the time between two samples.
  const peak = process.resourceUsage().maxRSS * 1_024
  if (peak > peakBefore) most = Math.max(most, peak)
  const report = {
    attempts,
    grownBytes: most - baseline,
    socketBytesMax: readBytes(),
    blockedMsMax,
  }
  outbound.close()
  return report
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('message', async (orders) => {
    const report = await send(orders as SenderOrders)
    process.send?.(report, () => process.disconnect())
  })
}
