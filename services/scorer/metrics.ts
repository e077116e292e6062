/** Metrics of the scorer: everything that it stores, decides, raises, drops or fails to do. */
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { createBoundedLabel } from '#shared/core/base/bounded-labels.ts'
import { dropReasons } from '#shared/core/base/outcome.ts'
import { type DecidedLink, linkKinds } from '#shared/core/identity/decide-link.ts'
import type { AcceptedRegistration } from '#shared/core/installs/registration.ts'
import { isLate, type Replay } from '#shared/core/installs/replays.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { findPlaceholderIds } from '#shared/core/telemetry/placeholder-ids.ts'
import type { RaiseOutcome } from '#shared/io/alerts/raise-alerts.ts'
import {
  type DeadLetter,
  type DeadLetterLoss,
  deadLetterLosses,
} from '#shared/io/nats/dead-letters.ts'
import { latencyBucketsSeconds, type Metrics, startAtZero } from '#shared/io/process/metrics.ts'

type ScorerStep =
  | 'insert'
  | 'registrations'
  | 'identity'
  | 'reconciliation'
  | 'risk_features'
  | 'decisions'
  | 'replays'
  | 'phone_links'
  | 'raised'
  | 'session'
  | 'raise'
  | 'hint'
  | 'shadow'
  | 'shadow_risk_features'

/** Measures the time of a running step. @returns the result of `work` */
type Timed = <T>(step: ScorerStep, work: Promise<T>) => Promise<T>

/** Why a shadow policy did not decide an event. */
type ShadowSkip = 'policy' | 'defect' | 'store' | 'late' | 'resting'

export type ShadowObserver = {
  timed: Timed
  /** Events for which the decision of a shadow policy was stored. */
  decided: (events: number) => void
  skipped: (reason: ShadowSkip, events: number) => void
  failed: (what: 'versions') => void
}

type StoredMessage = {
  events: readonly AcceptedEvent[]
  /** Signals that are not in the catalog. */
  unknownSignals: readonly { sdkVersion: string; count: number }[]
}

type StoreObserver = {
  /**
   * @param messages the stored messages
   * @param nowMs the wall clock, in ms since 1970
   * @param withoutSignals how many of the events were stored without parsed signals
   */
  inserted: (messages: readonly StoredMessage[], nowMs: number, withoutSignals: number) => void
  registered: (registrations: readonly AcceptedRegistration[]) => void
  /** @param keys stored keys of installs, repeats included */
  identified: (keys: number) => void
  /** @param values signal values that only the stored body has, by tenant */
  leftOut: (values: ReadonlyMap<string, number>) => void
  dropped: (deadLetters: readonly Pick<DeadLetter, 'reason'>[]) => void
  /** A dead letter that was dropped instead of stored. */
  deadLetterLost: (loss: DeadLetterLoss) => void
  /** A message that arrived other than the stream has it. */
  garbled: () => void
}

type DecideObserver = {
  raised: (candidates: readonly AlertCandidate[], outcome: RaiseOutcome) => void
  /** Expected alerts that had been raised before. */
  existing: (alerts: number) => void
  /** Stored decisions that are not the edge's own. */
  differing: (events: number) => void
  /** An event whose bytes were received before. */
  retried: () => void
  replayed: (copies: readonly Replay[]) => void
  /** Installs whose phone was decided. */
  linked: (links: readonly DecidedLink[]) => void
  /** The counted steps of deciding on phones in one batch. */
  phoneSteps: (steps: number) => void
  unknownPolicy: () => void
  hintFailed: () => void
}

export type ScorerObserver = { timed: Timed } & StoreObserver & DecideObserver

/** @param nowMs the monotonic clock */
export function createScorerObserver(metrics: Metrics, nowMs: () => number): ScorerObserver {
  const steps = metrics.histogram('di_scorer_step_seconds', 'Time of one step of a batch', {
    buckets: latencyBucketsSeconds,
    labels: ['step'],
  })
  return {
    timed: async (step, work) => {
      const startedMs = nowMs()
      try {
        return await work
      } finally {
        steps.observe({ step }, (nowMs() - startedMs) / 1_000)
      }
    },
    ...createStoreObserver(metrics),
    ...createDecideObserver(metrics),
  }
}

function createStoreObserver(metrics: Metrics): StoreObserver {
  const sizes = metrics.histogram('di_insert_rows', 'Telemetry rows per insert', {
    buckets: [1, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000],
  })
  const rows = metrics.counter(
    'di_rows_inserted_total',
    'Inserted telemetry rows, repeats included',
  )
  const unparsed = metrics.counter(
    'di_events_without_signals_total',
    'Events stored with their body but without parsed signals',
  )
  const leftOut = metrics.counter(
    'di_signal_values_left_out_total',
    'Values of unknown signals beyond the stored names of a tenant; only the body has them',
    ['tenant'],
  )
  const drops = metrics.counter('di_events_dropped_total', 'Dead letters by reason', ['reason'])
  const lost = metrics.counter(
    'di_dead_letters_lost_total',
    'Dead letters dropped, because the stream is full or the tenant exceeds its share of it',
    ['loss'],
  )
  const registrations = metrics.counter(
    'di_registrations_stored_total',
    'Stored registrations of installs by provider and verdict, repeats included',
    ['provider', 'verdict'],
  )
  const identityKeys = metrics.counter(
    'di_identity_keys_stored_total',
    'Stored keys of installs, repeats included',
  )
  const garbled = metrics.counter(
    'di_messages_garbled_total',
    'Messages that arrived other than the stream has them, and were read again',
  )
  startAtZero(
    drops,
    dropReasons.map((reason) => ({ reason })),
  )
  startAtZero(
    lost,
    deadLetterLosses.map((loss) => ({ loss })),
  )
  const countEvents = createEventCounters(metrics)
  const countUnknownSignals = createUnknownSignalCounter(metrics)
  return {
    inserted: (messages, nowMs, withoutSignals) => {
      const events = messages.flatMap((message) => message.events)
      if (events.length === 0) return
      rows.inc(events.length)
      sizes.observe(events.length)
      unparsed.inc(withoutSignals)
      countEvents(events, nowMs)
      for (const { unknownSignals } of messages) countUnknownSignals(unknownSignals)
    },
    registered: (all) => {
      for (const { body } of all) {
        registrations.inc({ provider: body.provider, verdict: body.verdict })
      }
    },
    identified: (keys) => identityKeys.inc(keys),
    garbled: () => garbled.inc(),
    leftOut: (values) => {
      for (const [tenant, count] of values) leftOut.inc({ tenant }, count)
    },
    dropped: (deadLetters) => {
      for (const { reason } of deadLetters) drops.inc({ reason })
    },
    deadLetterLost: (loss) => lost.inc({ loss }),
  }
}

function createEventCounters(
  metrics: Metrics,
): (events: readonly AcceptedEvent[], nowMs: number) => void {
  const scored = metrics.counter('di_events_scored_total', 'Events by tenant and edge action', [
    'tenant',
    'action',
  ])
  const freshness = metrics.histogram(
    'di_freshness_seconds',
    'Time from the receipt of an event at the edge to its row in ClickHouse',
    { buckets: [...latencyBucketsSeconds, 60, 300, 3_600] },
  )
  const placeholders = metrics.counter(
    'di_placeholder_ids_total',
    'Placeholder ids of stored events by tenant and field, repeats included',
    ['tenant', 'field'],
  )
  return (events, nowMs) => {
    for (const { tenant_id: tenant, rasp_action: action, body, received_at } of events) {
      scored.inc({ tenant, action })
      for (const field of findPlaceholderIds(body)) placeholders.inc({ tenant, field })
      freshness.observe(Math.max(0, nowMs - received_at) / 1_000)
    }
  }
}

function createUnknownSignalCounter(
  metrics: Metrics,
): (found: StoredMessage['unknownSignals']) => void {
  const unknownSignals = metrics.counter(
    'di_unknown_signals_total',
    'Signals that are not in the catalog, by SDK version; the first hundred versions by name',
    ['sdk_version'],
  )
  const toVersionLabel = createBoundedLabel()
  return (found) => {
    for (const { sdkVersion, count } of found) {
      unknownSignals.inc({ sdk_version: toVersionLabel(sdkVersion) }, count)
    }
  }
}

function createDecideObserver(metrics: Metrics): DecideObserver {
  const alerts = metrics.counter('di_alerts_raised_total', 'Raised alerts by tenant and action', [
    'tenant',
    'action',
  ])
  const existing = metrics.counter('di_alerts_existing_total', 'Alerts that had been raised before')
  const unknownTenantAlerts = metrics.counter(
    'di_alerts_of_unknown_tenants_total',
    'Alerts not raised because their tenant does not exist any more',
  )
  const retries = metrics.counter(
    'di_events_retried_total',
    'Events whose bytes were received before',
  )
  const replays = metrics.counter(
    'di_events_replayed_total',
    'Events whose bytes were received before: more than ten minutes ago, or (reason network) ' +
      'sooner but from another network; repeats included',
    ['reason'],
  )
  startAtZero(replays, [{ reason: 'late' }, { reason: 'network' }])
  const links = metrics.counter(
    'di_phone_links_total',
    'Installs whose phone was decided, by kind: first, linked or possible; repeats included',
    ['kind'],
  )
  startAtZero(
    links,
    linkKinds.map((kind) => ({ kind })),
  )
  const shared = metrics.counter(
    'di_identifiers_shared_total',
    'New installs with the identifiers of several phones, repeats included',
  )
  const uncompared = metrics.counter(
    'di_phone_links_uncompared_total',
    'New installs that were decided without comparison, because their tenant had no steps left',
  )
  const phoneSteps = metrics.counter(
    'di_phone_steps_total',
    'Counted steps of deciding which phones new installs are on',
  )
  const differing = metrics.counter(
    'di_decisions_stored_total',
    'Stored decisions that differ from the edge’s, repeats included',
  )
  const policies = metrics.counter(
    'di_unknown_policies_total',
    'Policy documents that were not found; the default policy replaces them',
  )
  const hints = metrics.counter('di_hint_failures_total', 'Delivery hints that were not published')
  return {
    raised: (candidates, outcome) => {
      const actions = new Map(candidates.map((candidate) => [candidate.alertId, candidate.action]))
      for (const { tenantId: tenant, alertId } of outcome.raised) {
        alerts.inc({ tenant, action: actions.get(alertId)! })
      }
      existing.inc(outcome.existing)
      const unknown = new Set(outcome.unknownTenants)
      unknownTenantAlerts.inc(candidates.filter(({ tenantId }) => unknown.has(tenantId)).length)
    },
    existing: (alerts) => existing.inc(alerts),
    differing: (events) => differing.inc(events),
    retried: () => retries.inc(),
    replayed: (copies) => {
      for (const copy of copies) replays.inc({ reason: isLate(copy) ? 'late' : 'network' })
    },
    linked: (all) => {
      for (const { kind, identifiersShared, isCompared } of all) {
        links.inc({ kind })
        if (identifiersShared) shared.inc()
        if (!isCompared) uncompared.inc()
      }
    },
    phoneSteps: (steps) => phoneSteps.inc(steps),
    unknownPolicy: () => policies.inc(),
    hintFailed: () => hints.inc(),
  }
}

/** @param timed of `createScorerObserver` */
export function createShadowObserver(metrics: Metrics, timed: Timed): ShadowObserver {
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
    'Failed reads of the shadow policies',
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
