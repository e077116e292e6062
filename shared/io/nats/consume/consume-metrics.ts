/**
 * Metrics of consumers: what they handle, and their lag, which is read from the broker at each
 * scrape. All consumers of a process share one set of metrics with the label `consumer`.
 */
import type { Registry } from 'prom-client'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import type { Nats } from '../connection.ts'
import { isMessageGone } from '../jetstream-errors.ts'
import { shareReadings } from '../shared-readings.ts'

export type ConsumeMetrics = {
  batches: (messages: number, redelivered: number) => void
  failed: () => void
  fetchFailed: () => void
  nacked: (reason: 'defect' | 'outage', messages: number) => void
  quarantined: () => void
}

type ObservedConsumer = { nats: Nats; stream: string; durable: string; metrics: Metrics }

type Shared = { consumers: ObservedConsumer[]; of: (consumer: string) => ConsumeMetrics }

const sharedOf = new WeakMap<Registry, Shared>()

/** @returns the metrics of one consumer, which also gets the gauges of its lag */
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
  const batches = count('di_consume_batches_total', 'Batches started')
  const messages = count('di_consume_messages_total', 'Messages in started batches')
  const redelivered = count('di_consume_redelivered_total', 'Messages delivered before')
  const failures = count('di_consume_failures_total', 'Failed attempts to handle a batch')
  const fetchFailures = count('di_consume_fetch_failures_total', 'Failed fetches')
  const quarantined = count(
    'di_consume_quarantined_total',
    'Messages quarantined because they failed by a defect repeatedly',
  )
  const nacked = metrics.counter(
    'di_consume_nacked_total',
    'Messages nacked, to be delivered again, by reason',
    ['consumer', 'reason'],
  )
  return {
    consumers,
    of: (consumer) => {
      startAtZero(quarantined, [{ consumer }])
      return {
        batches: (delivered, again) => {
          batches.inc({ consumer })
          messages.inc({ consumer }, delivered)
          redelivered.inc({ consumer }, again)
        },
        failed: () => failures.inc({ consumer }),
        fetchFailed: () => fetchFailures.inc({ consumer }),
        nacked: (reason, count) => nacked.inc({ consumer, reason }, count),
        quarantined: () => quarantined.inc({ consumer }),
      }
    },
  }
}

type Lag = { pending: number; unacknowledged: number; oldestSeconds: number; lost: number }

function addLag(metrics: Metrics, consumers: readonly ObservedConsumer[]): void {
  const read = shareReadings(readLag)
  const addGauge = (name: string, help: string, pick: (lag: Lag) => number) => {
    metrics.gauge(name, help, {
      labels: ['consumer'],
      async collect() {
        for (const observed of consumers) {
          const lag = await read(observed)
          if (lag === null) this.remove({ consumer: observed.durable })
          else this.set({ consumer: observed.durable }, pick(lag))
        }
      },
    })
  }
  addGauge('di_consume_pending', 'Messages not yet delivered', ({ pending }) => pending)
  addGauge(
    'di_consume_unacknowledged',
    'Messages delivered and not yet acknowledged',
    ({ unacknowledged }) => unacknowledged,
  )
  addGauge(
    'di_consume_oldest_seconds',
    'Age of the oldest message that is not acknowledged',
    ({ oldestSeconds }) => oldestSeconds,
  )
  addGauge(
    'di_consume_lost',
    'Messages that the stream removed before they were acknowledged',
    ({ lost }) => lost,
  )
}

async function readLag({ nats, stream, durable }: ObservedConsumer): Promise<Lag | null> {
  if (!nats.connected()) return null
  const info = await nats.manager.consumers.info(stream, durable)
  const lag = {
    pending: info.num_pending,
    unacknowledged: info.num_ack_pending,
    oldestSeconds: 0,
    lost: 0,
  }
  if (lag.pending === 0 && lag.unacknowledged === 0) return lag
  const serverMs = Date.parse(info.ts ?? '') || Date.now()
  const { oldestMs, lost } = await findOldest(nats, stream, info.ack_floor.stream_seq)
  return { ...lag, lost, oldestSeconds: Math.max(0, (serverMs - oldestMs) / 1000) }
}

/**
 * @returns when the oldest message above a sequence was stored, and how many messages between them
 *   the stream has removed
 */
async function findOldest(
  nats: Nats,
  stream: string,
  ackFloor: number,
): Promise<{ oldestMs: number; lost: number }> {
  try {
    const oldest = await nats.manager.streams.getMessage(stream, { seq: ackFloor + 1 })
    return { oldestMs: oldest.time.getTime(), lost: 0 }
  } catch (error) {
    if (!isMessageGone(error)) throw error
    // It was erased, or it exceeded the stream's maximum age.
    const { state } = await nats.manager.streams.info(stream)
    const lost = Math.max(0, state.first_seq - ackFloor - 1)
    return { oldestMs: Date.parse(state.first_ts), lost }
  }
}
