/**
 * What a consumer counts, and how far behind it is: the lag is asked of the broker whenever metrics
 * are, so that it is there even when nothing is consumed.
 */
import type { Counter } from 'prom-client'
import type { Metrics } from './metrics.ts'
import type { Nats } from './nats.ts'

export type ConsumeMetrics = {
  batches: Counter
  messages: Counter
  redelivered: Counter
  failures: Counter
  takeFailures: Counter
  givenBack: Counter<'reason'>
}

export type ObservedConsumer = { nats: Nats; stream: string; durable: string; metrics: Metrics }

export function observeConsumer(observed: ObservedConsumer): ConsumeMetrics {
  const { metrics } = observed
  addLag(observed)
  return {
    batches: metrics.counter('di_consume_batches_total', 'Batches begun'),
    messages: metrics.counter('di_consume_messages_total', 'Messages in batches begun'),
    redelivered: metrics.counter(
      'di_consume_redelivered_total',
      'Messages that had been delivered before',
    ),
    failures: metrics.counter('di_consume_failures_total', 'Failed tries of a batch'),
    takeFailures: metrics.counter(
      'di_consume_take_failures_total',
      'Times that the messages stopped coming',
    ),
    givenBack: metrics.counter(
      'di_consume_given_back_total',
      'Messages given back to be delivered again',
      ['reason'],
    ),
  }
}

type Lag = { pending: number; unacknowledged: number; oldestSeconds: number }

function addLag(observed: ObservedConsumer): void {
  const { metrics } = observed
  // Three gauges, one look: metrics are collected within a moment of each other.
  let look: { atMs: number; lag: Promise<Lag | null> } | undefined
  const readLag = (): Promise<Lag | null> => {
    if (look === undefined || performance.now() - look.atMs > 500) {
      look = { atMs: performance.now(), lag: askLag(observed).catch(() => null) }
    }
    return look.lag
  }
  const addGauge = (name: string, help: string, pick: (lag: Lag) => number) => {
    metrics.gauge(name, help, {
      async collect() {
        const lag = await readLag()
        // Without an answer there is no number: an old one would look like a healthy one.
        if (lag === null) this.remove()
        else this.set(pick(lag))
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
}

async function askLag({ nats, stream, durable }: ObservedConsumer): Promise<Lag | null> {
  if (!nats.connected()) return null
  const info = await nats.manager.consumers.info(stream, durable)
  const lag = {
    pending: info.num_pending,
    unacknowledged: info.num_ack_pending,
    oldestSeconds: 0,
  }
  if (lag.pending === 0 && lag.unacknowledged === 0) return lag
  const oldest = await nats.manager.streams.getMessage(stream, {
    seq: info.ack_floor.stream_seq + 1,
  })
  const serverNow = Date.parse(info.ts ?? '') || oldest.time.getTime()
  return { ...lag, oldestSeconds: Math.max(0, (serverNow - oldest.time.getTime()) / 1000) }
}
