/**
 * The scorer's metrics: everything that is stored, decided, raised, dropped or failed is counted.
 */
import type { AlertCandidate } from '#shared/core/alerts/alert-rules.ts'
import { createBoundedLabel } from '#shared/core/base/bounded-labels.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findPlaceholderIds } from '#shared/core/telemetry/placeholder-ids.ts'
import type { RaiseOutcome } from '#shared/io/alerts/raise-alerts.ts'
import type { DeadLetter, DeadLetterLoss } from '#shared/io/nats/dead-letters.ts'
import { latencyBucketsSeconds, type Metrics } from '#shared/io/process/metrics.ts'

export type ScorerStep =
  | 'insert'
  | 'reconciliation'
  | 'risk_features'
  | 'raised'
  | 'session'
  | 'raise'
  | 'hint'
  | 'shadow'
  | 'shadow_risk_features'

/** Why events went without their shadow decision. */
export type ShadowSkip = 'policy' | 'defect' | 'store' | 'late' | 'resting'

export type ShadowObserver = {
  timed: ScorerObserver['timed']
  /** Events for which a shadow's decision was recorded. */
  decided: (events: number) => void
  /** Events that go without it. */
  skipped: (why: ShadowSkip, events: number) => void
  /** Something that is done without. */
  failed: (what: 'versions') => void
}

export type InsertedMessage = {
  events: readonly AcceptedEvent[]
  /** Signals that the catalog does not know. */
  unknownSignals: readonly { sdkVersion: string; count: number }[]
}

export type ScorerObserver = {
  /** Measures a step that has begun, and passes on what it comes to. */
  timed: <T>(step: ScorerStep, work: Promise<T>) => Promise<T>
  /**
   * @param read what was inserted, by message
   * @param nowMs the wall clock, in ms since 1970
   * @param withoutSignals how many of the events have no parsed signals
   */
  inserted: (read: readonly InsertedMessage[], nowMs: number, withoutSignals: number) => void
  /** @param values of signals that only the body has, by tenant */
  leftOut: (values: ReadonlyMap<string, number>) => void
  dropped: (deadLetters: readonly Pick<DeadLetter, 'reason'>[]) => void
  /** A letter that was dropped instead of stored. */
  deadLetterLost: (loss: DeadLetterLoss) => void
  raised: (candidates: readonly AlertCandidate[], outcome: RaiseOutcome) => void
  /** Expected alerts that had been raised before. */
  existing: (alerts: number) => void
  /** An event whose bytes had been taken before. */
  retried: () => void
  unknownPolicy: () => void
  hintFailed: () => void
}

/** The metrics of shadow policies. */
export function createShadowObserver(
  metrics: Metrics,
  timed: ScorerObserver['timed'],
): ShadowObserver {
  const decided = metrics.counter(
    'di_shadow_decisions_total',
    'Events that a shadow policy decided',
  )
  const skipped = metrics.counter(
    'di_shadow_skipped_total',
    'Events of tenants with a shadow policy that it did not decide, by reason',
    ['reason'],
  )
  const failures = metrics.counter(
    'di_shadow_failures_total',
    'Questions about shadow policies that were not answered',
    ['what'],
  )
  return {
    timed,
    decided: (events) => decided.inc(events),
    skipped: (reason, events) => {
      if (events > 0) skipped.inc({ reason }, events)
    },
    failed: (what) => failures.inc({ what }),
  }
}

/** @param monotonicMs a clock that only goes forward */
export function createScorerObserver(metrics: Metrics, monotonicMs: () => number): ScorerObserver {
  const scored = metrics.counter('di_events_scored_total', 'Events by tenant and edge action', [
    'tenant',
    'action',
  ])
  const rows = metrics.counter(
    'di_rows_inserted_total',
    'Telemetry rows inserted, repeats included',
  )
  const steps = metrics.histogram('di_scorer_step_seconds', 'One step of a batch, by step', {
    buckets: latencyBucketsSeconds,
    labels: ['step'],
  })
  const sizes = metrics.histogram('di_insert_rows', 'Rows of one insert', {
    buckets: [1, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000],
  })
  const freshness = metrics.histogram('di_freshness_seconds', 'From the edge to ClickHouse', {
    buckets: [...latencyBucketsSeconds, 60, 300, 3_600],
  })
  const unknownSignals = metrics.counter(
    'di_unknown_signals_total',
    'Signals that the catalog does not know, by SDK version; the first hundred versions by name',
    ['sdk_version'],
  )
  const toVersionLabel = createBoundedLabel()
  const unparsed = metrics.counter(
    'di_events_without_signals_total',
    'Events stored with their body but without parsed signals',
  )
  const leftOut = metrics.counter(
    'di_signal_values_left_out_total',
    'Values of unknown signals that only the body has: the tenant sends more names than are stored',
    ['tenant'],
  )
  const placeholders = metrics.counter(
    'di_placeholder_ids_total',
    'Ids of stored events that stand for none, by tenant and field, repeats included',
    ['tenant', 'field'],
  )
  const drops = metrics.counter('di_events_dropped_total', 'Poison put aside, by reason', [
    'reason',
  ])
  const lost = metrics.counter(
    'di_dead_letters_lost_total',
    'Poison dropped: the dead-letter stream was full, or its tenant had sent its share of it',
    ['loss'],
  )
  const alerts = metrics.counter('di_alerts_raised_total', 'Alerts raised, by tenant and action', [
    'tenant',
    'action',
  ])
  const existing = metrics.counter('di_alerts_existing_total', 'Alerts that were there already')
  const unknownTenantAlerts = metrics.counter(
    'di_alerts_of_unknown_tenants_total',
    'Alerts not raised because their tenant does not exist any more',
  )
  const retries = metrics.counter('di_events_retried_total', 'Events whose bytes came before')
  const policies = metrics.counter('di_unknown_policies_total', 'Policy documents nobody knew')
  const hints = metrics.counter('di_hint_failures_total', 'Delivery hints that were not published')
  return {
    timed: async (step, work) => {
      const begunMs = monotonicMs()
      try {
        return await work
      } finally {
        steps.observe({ step }, (monotonicMs() - begunMs) / 1_000)
      }
    },
    inserted: (read, nowMs, withoutSignals) => {
      const events = read.flatMap((message) => message.events)
      if (events.length === 0) return
      rows.inc(events.length)
      sizes.observe(events.length)
      unparsed.inc(withoutSignals)
      const counts = new Map<string, { tenant: string; action: string; events: number }>()
      for (const event of events) {
        const { tenant_id: tenant, rasp_action: action } = event
        const count = counts.get(`${tenant} ${action}`)
        if (count === undefined) counts.set(`${tenant} ${action}`, { tenant, action, events: 1 })
        else count.events++
        for (const field of findPlaceholderIds(event.body)) placeholders.inc({ tenant, field })
        freshness.observe(Math.max(0, nowMs - event.received_at) / 1_000)
      }
      for (const { sdkVersion, count } of read.flatMap((message) => message.unknownSignals)) {
        unknownSignals.inc({ sdk_version: toVersionLabel(sdkVersion) }, count)
      }
      for (const { tenant, action, events } of counts.values()) {
        scored.inc({ tenant, action }, events)
      }
    },
    leftOut: (values) => {
      for (const [tenant, count] of values) leftOut.inc({ tenant }, count)
    },
    dropped: (deadLetters) => {
      for (const { reason } of deadLetters) drops.inc({ reason })
    },
    deadLetterLost: (loss) => lost.inc({ loss }),
    raised: (candidates, outcome) => {
      const actions = new Map(candidates.map((candidate) => [candidate.alertId, candidate.action]))
      for (const { tenantId, alertId } of outcome.raised) {
        alerts.inc({ tenant: tenantId, action: actions.get(alertId)! })
      }
      existing.inc(outcome.existing)
      const tenants = new Set(outcome.unknownTenants)
      unknownTenantAlerts.inc(
        candidates.filter((candidate) => tenants.has(candidate.tenantId)).length,
      )
    },
    existing: (alerts) => existing.inc(alerts),
    retried: () => retries.inc(),
    unknownPolicy: () => policies.inc(),
    hintFailed: () => hints.inc(),
  }
}
