/**
 * What the delivery process counts: every attempt, every end, every claim that was given back or
 * lost, and how long alerts and requests took.
 */
import type { DeliveryOutcome } from '#shared/io/deliveries/delivery-store.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>

/** @param inFlight asked at every scrape */
export function createDeliveryMetrics(metrics: Metrics, inFlight: () => number) {
  const buckets = latencyBucketsSeconds
  const attempts = metrics.counter(
    'di_delivery_attempts_total',
    'Webhook attempts by what became of the delivery and why the attempt failed',
    ['outcome', 'error_kind'],
  )
  const ended = metrics.counter('di_deliveries_ended_total', 'Deliveries that ended, by state', [
    'state',
    'reason',
  ])
  const lost = metrics.counter(
    'di_delivery_claims_lost_total',
    'Outcomes that were not recorded because the claim had run out and was taken over',
  )
  const attemptSeconds = metrics.histogram(
    'di_delivery_attempt_seconds',
    'Duration of webhook attempts, connecting included',
    { buckets, labels: ['outcome'] },
  )
  metrics.gauge('di_delivery_in_flight', 'Webhook requests in flight', {
    collect() {
      this.set(inFlight())
    },
  })

  const countOutcomes = (batch: readonly DeliveryOutcome[], recorded: ReadonlySet<string>) => {
    // Most of a batch went the same way: one increment for all of them.
    const ways = new Map<string, { outcome: string; error_kind: string; n: number }>()
    const ends = new Map<string, { state: string; reason: string; n: number }>()
    for (const { deliveryId, attempt, next } of batch) {
      if (!recorded.has(deliveryId)) {
        lost.inc()
        continue
      }
      const reason = 'reason' in next ? next.reason : 'none'
      if (attempt !== null) {
        const outcome = next.state === 'pending' ? 'rescheduled' : next.state
        const error_kind = attempt.errorKind ?? 'none'
        count(ways, `${outcome} ${error_kind}`, { outcome, error_kind, n: 0 })
        attemptSeconds.observe({ outcome }, attempt.durationMs / 1_000)
      }
      if (next.state !== 'pending') {
        count(ends, `${next.state} ${reason}`, { state: next.state, reason, n: 0 })
      }
    }
    for (const { n, ...labels } of ways.values()) attempts.inc(labels, n)
    for (const { n, ...labels } of ends.values()) ended.inc(labels, n)
  }
  return {
    countOutcomes,
    firstAttemptSeconds: metrics.histogram(
      'di_delivery_first_attempt_seconds',
      'From the alert to the first byte of its first attempt',
      { buckets },
    ),
    released: metrics.counter(
      'di_delivery_released_total',
      'Claims given back without an attempt, by reason',
      ['reason'],
    ),
    switchedOff: metrics.counter('di_webhooks_switched_off_total', 'Webhooks switched off', [
      'reason',
    ]),
    holds: metrics.counter(
      'di_delivery_holds_total',
      'Webhooks whose deliveries began or ended to be held because their receiver fails',
      ['change'],
    ),
    unrecorded: metrics.counter(
      'di_delivery_unrecorded_total',
      'Outcomes that Postgres refused to record',
    ),
    redials: metrics.counter(
      'di_delivery_redials_total',
      'Attempts sent once more over a fresh connection, because a used one had ended',
    ),
    leaseExtensions: metrics.counter(
      'di_delivery_secret_lease_extensions_total',
      'Times that secrets were allowed to sign longer because Postgres was slow',
    ),
    claimFailures: metrics.counter('di_delivery_claim_failures_total', 'Claims that failed'),
    sweeps: metrics.counter('di_delivery_sweeps_total', 'Sweeps by result', ['result']),
    hints: metrics.counter('di_delivery_hints_total', 'Hints by result', ['result']),
    due: metrics.gauge('di_delivery_due', 'Deliveries that are due, counted up to 100,000'),
    oldestDueSeconds: metrics.gauge(
      'di_delivery_oldest_due_seconds',
      'How long the oldest due delivery has been due, at the last sweep',
    ),
  }
}

function count<T extends { n: number }>(counted: Map<string, T>, key: string, first: T): void {
  const known = counted.get(key)
  if (known === undefined) counted.set(key, first)
  ;(known ?? first).n += 1
}
