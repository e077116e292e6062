/** Metrics of the delivery process: attempts, ended deliveries, claims, latencies. */
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>

/** @param inFlight read at every scrape */
export function createDeliveryMetrics(metrics: Metrics, inFlight: () => number) {
  const buckets = latencyBucketsSeconds
  const attempts = metrics.counter(
    'di_delivery_attempts_total',
    'Webhook attempts, by outcome of the delivery and kind of error',
    ['outcome', 'error_kind'],
  )
  const ended = metrics.counter('di_deliveries_ended_total', 'Deliveries that ended, by state', [
    'state',
    'reason',
  ])
  const lost = metrics.counter(
    'di_delivery_claims_lost_total',
    'Outcomes not recorded because another process had taken the claim over',
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
    // Most outcomes of a batch are alike: one increment for all of them.
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
      'Time from the alert to the start of its first attempt',
      { buckets },
    ),
    released: metrics.counter(
      'di_delivery_released_total',
      'Claims released without an attempt, by reason',
      ['reason'],
    ),
    switchedOff: metrics.counter('di_webhooks_switched_off_total', 'Webhooks switched off', [
      'reason',
    ]),
    circuitChanges: metrics.counter(
      'di_delivery_circuit_changes_total',
      'Changes of webhook circuits, by new state',
      ['state'],
    ),
    unrecorded: metrics.counter(
      'di_delivery_unrecorded_total',
      'Outcomes that Postgres refused to record',
    ),
    redials: metrics.counter(
      'di_delivery_redials_total',
      'Attempts sent again over a new connection, because a reused one had ended',
    ),
    leaseExtensions: metrics.counter(
      'di_delivery_secret_lease_extensions_total',
      'Extensions of the webhook secret lease because Postgres was slow',
    ),
    claimFailures: metrics.counter('di_delivery_claim_failures_total', 'Claims that failed'),
    sweeps: metrics.counter('di_delivery_sweeps_total', 'Sweeps by result', ['result']),
    hints: metrics.counter('di_delivery_hints_total', 'Hints by result', ['result']),
    failing: metrics.gauge(
      'di_webhook_failing_seconds',
      'For how long the webhook of a tenant has failed, of those that failed for longest',
      { labels: ['tenant'] },
    ),
    due: metrics.gauge('di_delivery_due', 'Deliveries that are due, counted up to 100,000'),
    oldestDueSeconds: metrics.gauge(
      'di_delivery_oldest_due_seconds',
      'Time for which the oldest due delivery has been due, or may have been while sweeps fail',
    ),
  }
}

function count<T extends { n: number }>(counted: Map<string, T>, key: string, first: T): void {
  const known = counted.get(key)
  if (known === undefined) counted.set(key, first)
  ;(known ?? first).n += 1
}
