/**
 * What consumers count, and how far behind each is: the lag is asked of the broker whenever metrics
 * are, so that it is there even when nothing is consumed. All consumers of a process share one set
 * of metrics, told apart by the label `consumer`.
 */
import type { Registry } from 'prom-client'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { Nats } from './connection.ts'
import { isMessageGone } from './jetstream-errors.ts'

export type ConsumeMetrics = {
  batches: (messages: number, redelivered: number) => void
  failed: () => void
  fetchFailed: () => void
  nacked: (reason: 'defect' | 'outage', messages: number) => void
  quarantined: () => void
}

export type ObservedConsumer = { nats: Nats; stream: string; durable: string; metrics: Metrics }

type Shared = { consumers: ObservedConsumer[]; of: (consumer: string) => ConsumeMetrics }

const sharedOf = new WeakMap<Registry, Shared>()

export function observeConsumer(observed: ObservedConsumer): ConsumeMetrics {
  const { registry } = observed.metrics
  let shared = sharedOf.get(registry)
  if (shared === undefined) {
    shared = createShared(observed.metrics)
    sharedOf.set(registry, shared)
  }
  shared.consumers.push(observed)
  return shared.of(observed.durable)
}

function createShared(metrics: Metrics): Shared {
  const consumers: ObservedConsumer[] = []
  addLag(metrics, consumers)
  const count = (name: string, help: string) => metrics.counter(name, help, ['consumer'])
  const batches = count('di_consume_batches_total', 'Batches begun')
  const messages = count('di_consume_messages_total', 'Messages in batches begun')
  const redelivered = count(
    'di_consume_redelivered_total',
    'Messages that had been delivered before',
  )
  const failures = count('di_consume_failures_total', 'Failed tries of a batch')
  const takeFailures = count(
    'di_consume_fetch_failures_total',
    'Times that the messages stopped coming',
  )
  const nacked = metrics.counter(
    'di_consume_nacked_total',
    'Messages given back to be delivered again',
    ['consumer', 'reason'],
  )
  const quarantined = count(
    'di_consume_quarantined_total',
    'Messages put aside because they hit a defect of ours again and again',
  )
  return {
    consumers,
    of: (consumer) => ({
      batches: (taken, again) => {
        batches.inc({ consumer })
        messages.inc({ consumer }, taken)
        redelivered.inc({ consumer }, again)
      },
      failed: () => failures.inc({ consumer }),
      fetchFailed: () => takeFailures.inc({ consumer }),
      nacked: (reason, count) => nacked.inc({ consumer, reason }, count),
      quarantined: () => quarantined.inc({ consumer }),
    }),
  }
}

type Lag = { pending: number; unacknowledged: number; oldestSeconds: number; lost: number }

function addLag(metrics: Metrics, consumers: readonly ObservedConsumer[]): void {
  // Four gauges, one look at each consumer: metrics are collected within a moment of each other.
  const looks = new Map<ObservedConsumer, { atMs: number; lag: Promise<Lag | null> }>()
  const readLag = (observed: ObservedConsumer): Promise<Lag | null> => {
    let look = looks.get(observed)
    if (look === undefined || performance.now() - look.atMs > 500) {
      look = { atMs: performance.now(), lag: askLag(observed).catch(() => null) }
      looks.set(observed, look)
    }
    return look.lag
  }
  const addGauge = (name: string, help: string, pick: (lag: Lag) => number) => {
    metrics.gauge(name, help, {
      labels: ['consumer'],
      async collect() {
        for (const observed of consumers) {
          const lag = await readLag(observed)
          // Without an answer there is no number: an old one would look like a healthy one.
          if (lag === null) this.remove({ consumer: observed.durable })
          else this.set({ consumer: observed.durable }, pick(lag))
        }
      },
    })
  }
  addGauge('di_consume_pending', 'Messages never delivered yet', (lag) => lag.pending)
  addGauge('di_consume_unacknowledged', 'Messages delivered and not acknowledged', (lag) => {
    return lag.unacknowledged
  })
  addGauge(
    'di_consume_oldest_seconds',
    'Age of the oldest message that is not acknowledged',
    (lag) => lag.oldestSeconds,
  )
  addGauge(
    'di_consume_lost',
    'Messages that the stream has dropped before they were acknowledged',
    (lag) => lag.lost,
  )
}

async function askLag({ nats, stream, durable }: ObservedConsumer): Promise<Lag | null> {
  if (!nats.connected()) return null
  const info = await nats.manager.consumers.info(stream, durable)
  const lag = {
    pending: info.num_pending,
    unacknowledged: info.num_ack_pending,
    oldestSeconds: 0,
    lost: 0,
  }
  if (lag.pending === 0 && lag.unacknowledged === 0) return lag
  const serverNow = Date.parse(info.ts ?? '') || Date.now()
  const floor = info.ack_floor.stream_seq
  const [oldestMs, lost] = await findOldest(nats, stream, floor)
  return { ...lag, lost, oldestSeconds: Math.max(0, (serverNow - oldestMs) / 1000) }
}

/** When the oldest message after a floor was stored, and how many before it the stream dropped. */
async function findOldest(
  nats: Nats,
  stream: string,
  floor: number,
): Promise<[oldestMs: number, lost: number]> {
  try {
    const oldest = await nats.manager.streams.getMessage(stream, { seq: floor + 1 })
    return [oldest.time.getTime(), 0]
  } catch (error) {
    if (!isMessageGone(error)) throw error
    // It was erased, or it was older than the stream keeps messages.
    const { state } = await nats.manager.streams.info(stream)
    return [Date.parse(state.first_ts), Math.max(0, state.first_seq - floor - 1)]
  }
}
