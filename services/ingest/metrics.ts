/**
 * The numbers of the intake: every accept by tenant and action, every refusal by code and reason,
 * every batch. The hot path only adds to plain numbers; they become metrics when somebody asks.
 */
import { problemStatus } from '#shared/core/http/problem.ts'
import { type Action, actions } from '#shared/core/scoring/score.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { Acceptance, Refusal } from './decide-submission.ts'
import type { CommitObserver } from './group-commit.ts'

export type IngestObserver = {
  accepted: (acceptance: Acceptance, tookMs: number) => void
  refused: (refusal: Refusal) => void
  commit: CommitObserver
  /** Why telemetry cannot be stored, as of the last seconds, or null. */
  findStorageFault: () => string | null
}

/** A failed batch speaks for this long, unless one is stored meanwhile. */
const storageFaultMs = 5_000

const secondsBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 3]
const eventsBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256]
const bytesBuckets = [1024, 4096, 16_384, 65_536, 131_072, 262_144, 524_288, 1_048_576]

/** @param facts the monotonic clock, and what waits: in admission, group commit and as a 429 */
export function createIngestObserver(
  metrics: Metrics,
  facts: {
    nowMs: () => number
    waiting: () => { events: number; bytes: number }
    queued: () => { requests: number; bytes: number }
    incompleteBytes: () => number
    delayedRefusals: () => number
  },
): IngestObserver {
  const { nowMs, waiting, queued, incompleteBytes, delayedRefusals } = facts
  let failure: { fault: string; atMs: number } | null = null
  const seconds = metrics.histogram(
    'di_ingest_accept_seconds',
    'From a complete body to its answer, of what was accepted',
    { buckets: secondsBuckets },
  )
  metrics.gauge('di_ingest_waiting_events', 'Events taken and not yet stored', {
    collect() {
      this.set(waiting().events)
    },
  })
  metrics.gauge('di_ingest_waiting_bytes', 'Bytes of events taken and not yet stored', {
    collect() {
      this.set(waiting().bytes)
    },
  })
  metrics.gauge('di_ingest_queued_requests', 'Submissions read and not yet decided on', {
    collect() {
      this.set(queued().requests)
    },
  })
  metrics.gauge('di_ingest_queued_bytes', 'Bytes of submissions read and not yet decided on', {
    collect() {
      this.set(queued().bytes)
    },
  })
  metrics.gauge('di_ingest_incomplete_bodies_bytes', 'Bytes of bodies that are not complete', {
    collect() {
      this.set(incompleteBytes())
    },
  })
  metrics.gauge('di_ingest_delayed_refusals', 'Answers to tenants over a limit that are held', {
    collect() {
      this.set(delayedRefusals())
    },
  })
  const unknown = metrics.counter(
    'di_ingest_unknown_signals_total',
    'Signals of accepted events that the catalog does not know',
    ['platform'],
  )
  const countAccepted = createAcceptedCounter(metrics)
  const countRefused = createRefusedCounter(metrics)
  return {
    accepted: ({ tenantId, action, platform, unknownSignals }, tookMs) => {
      countAccepted(tenantId, action)
      if (unknownSignals > 0) unknown.inc({ platform }, unknownSignals)
      seconds.observe(tookMs / 1000)
    },
    refused: countRefused,
    commit: createCommitObserver(metrics, (fault) => {
      failure = fault === null ? null : { fault, atMs: nowMs() }
    }),
    findStorageFault: () => {
      if (failure === null || nowMs() - failure.atMs > storageFaultMs) return null
      return `refuses telemetry: ${failure.fault}`
    },
  }
}

/** Only tenants whose signature was verified get a series. */
function createAcceptedCounter(metrics: Metrics): (tenantId: string, action: Action) => void {
  const counts = new Map<string, Record<Action, number>>()
  const labels: ('tenant' | 'action')[] = ['tenant', 'action']
  metrics.counter('di_ingest_accepted_total', 'Events accepted', labels, function () {
    this.reset()
    for (const [tenant, byAction] of counts) {
      for (const action of actions) {
        if (byAction[action] > 0) this.inc({ tenant, action }, byAction[action])
      }
    }
  })
  return (tenantId, action) => {
    let byAction = counts.get(tenantId)
    if (byAction === undefined) {
      byAction = { ALLOW: 0, REVIEW: 0, BLOCK: 0 }
      counts.set(tenantId, byAction)
    }
    byAction[action]++
  }
}

function createRefusedCounter(metrics: Metrics): (refusal: Refusal) => void {
  const counts = new Map<string, { status: string; reason: string; count: number }>()
  const labels: ('status' | 'reason')[] = ['status', 'reason']
  metrics.counter('di_ingest_refused_total', 'Submissions refused', labels, function () {
    this.reset()
    for (const { status, reason, count } of counts.values()) this.inc({ status, reason }, count)
  })
  const limited = metrics.counter(
    'di_ingest_limited_total',
    'Submissions refused because their tenant is over a limit of its own, by limit',
    ['tenant', 'limit'],
  )
  return ({ reason, problem, limitedTenantId: tenant }) => {
    if (tenant !== undefined) limited.inc({ tenant, limit: reason })
    const entry = counts.get(reason)
    if (entry !== undefined) entry.count++
    else counts.set(reason, { status: String(problemStatus(problem.code)), reason, count: 1 })
  }
}

function createCommitObserver(
  metrics: Metrics,
  noteFault: (fault: string | null) => void,
): CommitObserver {
  const events = metrics.histogram('di_ingest_batch_events', 'Events per stored message', {
    buckets: eventsBuckets,
  })
  const bytes = metrics.histogram('di_ingest_batch_bytes', 'Bytes per stored message', {
    buckets: bytesBuckets,
  })
  const seconds = metrics.histogram(
    'di_ingest_publish_seconds',
    'From publish to acknowledgement',
    {
      buckets: secondsBuckets,
    },
  )
  const retries = metrics.counter('di_ingest_publish_retries_total', 'Publishes tried again', [
    'fault',
  ])
  const duplicates = metrics.counter(
    'di_ingest_publish_duplicates_total',
    'Publishes that JetStream had stored already: the first acknowledgement was lost',
  )
  const failures = metrics.counter('di_ingest_publish_failures_total', 'Batches given up', [
    'fault',
  ])
  return {
    stored: (batch) => {
      noteFault(null)
      events.observe(batch.events)
      bytes.observe(batch.bytes)
      seconds.observe(batch.tookMs / 1000)
      if (batch.duplicate) duplicates.inc()
    },
    retried: (fault) => retries.inc({ fault }),
    failed: ({ fault }) => {
      noteFault(fault)
      failures.inc({ fault })
    },
  }
}
