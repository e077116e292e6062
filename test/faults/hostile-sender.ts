/**
 * The process that sends to hostile receivers, by the attempt that the delivery process makes and
 * with its time limits. It warms up on a well-behaved receiver, takes its memory as the baseline,
 * makes all attempts at once and reports how they ended and how far its memory had grown.
 */
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ClaimedDelivery } from '#shared/io/delivery-claim-store.ts'
import { createOutbound } from '#shared/io/outbound-http.ts'
import { type DeliverDeps, deliverAlert } from '../../services/delivery/deliver-alert.ts'

export type SenderOrders = {
  /** How many attempts at once. */
  count: number
  /** Of the well-behaved receiver. */
  warmUp: string
  /** Attempts go to these in turn. */
  urls: string[]
}

export type SenderReport = {
  attempts: { url: string; ended: string; durationMs: number }[]
  /** Highest resident memory while the attempts ran, above that before them, in bytes. */
  grownBytes: number
  /** The most that was read from one socket, TLS records included. */
  socketBytesMax: number
  /** The longest that the process did nothing else, in ms. */
  blockedMsMax: number
}

const sampleMs = 50
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const body = Buffer.from(JSON.stringify({ alert_id: 'alr_1', padding: 'x'.repeat(1_000) }))

const outbound = createOutbound({
  resolve: async () => ['127.0.0.1'],
  trustedCertificates: readFileSync(
    new URL('../vectors/receiver-cert.pem', import.meta.url),
    'utf8',
  ),
})
const monotonicMs = () => performance.now()

function toDeps(url: string): DeliverDeps {
  return {
    connect: outbound.connect,
    readWebhook: async () => ({
      url,
      state: 'on',
      sealedSecret: secret,
      suspended: false,
      readAtMs: monotonicMs(),
    }),
    unseal: (sealed) => sealed,
    allowPrivate: true,
    nowMs: Date.now,
    monotonicMs,
    random: Math.random,
    onSend: () => undefined,
    onRelease: (_claimed, _why, error) => {
      throw error
    },
  }
}

async function attempt(url: string, n: number): Promise<SenderReport['attempts'][number]> {
  const claimed: ClaimedDelivery = {
    tenantId: `tenant-${n}`,
    deliveryId: `dlv_${n}`,
    claim: 'claim',
    claimedUntilMs: Date.now() + 60_000,
    event: 'risk.alert',
    body,
    attempts: 0,
    createdAtMs: Date.now(),
    environment: 'sandbox',
    url,
  }
  const beganMs = monotonicMs()
  const outcome = await deliverAlert(claimed, toDeps(url), new AbortController().signal)
  const made = outcome.attempt
  const ended = String(made?.status ?? made?.errorKind ?? 'released')
  return { url, ended, durationMs: monotonicMs() - beganMs }
}

/** Whatever a socket reads is counted, whether anybody gets to see it or not. */
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

async function send({ count, warmUp, urls }: SenderOrders): Promise<SenderReport> {
  await Promise.all(Array.from({ length: count }, (_, n) => attempt(warmUp, n)))
  await pause(500)
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
    Array.from({ length: count }, (_, n) => attempt(urls[n % urls.length]!, n)),
  )
  // What is still under way when the attempts have ended counts as well.
  await pause(1_000)
  clearInterval(timer)
  // The kernel's own high-water mark sees what falls between two samples.
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
