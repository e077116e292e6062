/**
 * Metrics of ingest: accepted events by tenant and action, refusals by status and reason, stored
 * messages, and what waits in the process.
 */

import type { FairShares } from '#shared/core/http/fair-shares.ts'
import { problemStatus } from '#shared/core/http/problem.ts'
import { type HashedBody, identifierFaults } from '#shared/core/identity/sent-identifiers.ts'
import {
  type TelemetryStream,
  toStreamLabels,
} from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { publishFaults } from '#shared/io/telemetry/telemetry-publisher.ts'
import type { Acceptance } from './decide-submission.ts'
import type { CommitObserver } from './group-commit.ts'
import type { BatchCounts } from './http/batch-reply.ts'
import { type Refusal, refusals } from './refusals.ts'
import { verdictResults } from './verdicts/issue-verdict.ts'

export type IngestObserver = {
  accepted: (acceptance: Acceptance, tookMs: number) => void
  refused: (refusal: Refusal) => void
  /** A client's batch with its answer: `accepted` or the code of a problem. */
  clientBatch: (code: string, counts: BatchCounts | null) => void
  /** A response that failed by a defect. */
  unanswered: () => void
  /** Of each telemetry stream, in the order of their numbers. */
  commits: CommitObserver[]
  /** Why no stream could store telemetry in the last seconds, or null. */
  findStorageFault: () => string | null
  /** Why one stream could not, while another could; null otherwise. */
  findStreamFault: (stream: number) => string | null
}

/** How long `findStorageFault` reports a failed batch, unless another is stored meanwhile. */
const storageFaultMs = 5_000

const secondsBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 3]
const eventsBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256]
const bytesBuckets = [1024, 4096, 16_384, 65_536, 131_072, 262_144, 524_288, 1_048_576]

/** What waits in the process at this moment. */
export type IngestBacklog = {
  waiting: () => { events: number; bytes: number }
  queued: () => { requests: number; bytes: number }
  incompleteBytes: () => number
  delayedRefusals: () => number
}

type ObserverOptions = {
  backlog: IngestBacklog
  shares: Pick<FairShares, 'level'>
  streams: readonly TelemetryStream[]
  /** The monotonic clock. */
  nowMs: () => number
}

export function createIngestObserver(
  metrics: Metrics,
  { backlog, shares, streams, nowMs }: ObserverOptions,
): IngestObserver {
  const failures = new Map<number, { fault: string; atMs: number }>()
  const findFault = (stream: number): string | null => {
    const failure = failures.get(stream)
    if (failure === undefined || nowMs() - failure.atMs > storageFaultMs) return null
    return `refuses telemetry: ${failure.fault}`
  }
  const isAnyStoring = () => streams.some(({ number }) => findFault(number) === null)
  const addGauge = createGaugeAdder(metrics)
  addBacklogGauges(addGauge, backlog)
  addGauge(
    'di_ingest_share_bytes_per_second',
    'What one tenant may send while others send too; infinite while there is room for all',
    () => shares.level(nowMs()),
  )
  const seconds = metrics.histogram(
    'di_ingest_accept_seconds',
    'Time from the complete body of an accepted submission to its response',
    { buckets: secondsBuckets },
  )
  const unknown = metrics.counter(
    'di_ingest_unknown_signals_total',
    'Signals of accepted events that are not in the catalog',
    ['platform'],
  )
  // Only verified tenants get a series.
  const accepted = metrics.counter('di_ingest_accepted_total', 'Accepted events', [
    'tenant',
    'action',
  ])
  const verdicts = metrics.counter<'result'>(
    'di_ingest_verdicts_total',
    'Accepted events that asked for a verdict token, by what became of it',
    ['result'],
  )
  startAtZero(
    verdicts,
    verdictResults.map((result) => ({ result })),
  )
  const identifiers = createIdentifierCounter(metrics)
  const unanswered = metrics.counter(
    'di_ingest_unanswered_total',
    'Submissions whose response failed by a defect',
  )
  return {
    accepted: (acceptance, tookMs) => {
      const { tenantId: tenant, action, platform, unknownSignals, verdict } = acceptance
      accepted.inc({ tenant, action })
      if (verdict !== null) verdicts.inc({ result: verdict })
      if (acceptance.hashedBody !== null) identifiers(acceptance.hashedBody)
      if (unknownSignals > 0) unknown.inc({ platform }, unknownSignals)
      seconds.observe(tookMs / 1000)
    },
    refused: createRefusedCounter(metrics),
    clientBatch: createBatchCounter(metrics),
    unanswered: () => unanswered.inc(),
    commits: createCommitObservers(metrics, streams, (stream, fault) => {
      if (fault === null) failures.delete(stream)
      else failures.set(stream, { fault, atMs: nowMs() })
    }),
    findStorageFault: () => (isAnyStoring() ? null : findFault(1)),
    findStreamFault: (stream) => (isAnyStoring() ? findFault(stream) : null),
  }
}

/** Identifiers of phones, by what became of them. */
function createIdentifierCounter(metrics: Metrics): (body: HashedBody) => void {
  const counter = metrics.counter<'result'>(
    'di_ingest_identifiers_total',
    'Identifiers of phones in accepted events: hashed, or why one was left out',
    ['result'],
  )
  startAtZero(
    counter,
    ['hashed', ...identifierFaults].map((result) => ({ result })),
  )
  return ({ hashed, leftOut }) => {
    counter.inc({ result: 'hashed' }, hashed)
    for (const fault of leftOut) counter.inc({ result: fault })
  }
}

type AddGauge = (name: string, help: string, read: () => number) => void

function createGaugeAdder(metrics: Metrics): AddGauge {
  return (name, help, read) => {
    metrics.gauge(name, help, {
      collect() {
        this.set(read())
      },
    })
  }
}

function addBacklogGauges(addGauge: AddGauge, backlog: IngestBacklog): void {
  const { waiting, queued, incompleteBytes, delayedRefusals } = backlog
  addGauge('di_ingest_waiting_events', 'Accepted events not yet stored', () => waiting().events)
  addGauge('di_ingest_waiting_bytes', 'Bytes of accepted events not yet stored', () => {
    return waiting().bytes
  })
  addGauge('di_ingest_queued_requests', 'Submissions read and not yet decided', () => {
    return queued().requests
  })
  addGauge('di_ingest_queued_bytes', 'Bytes of submissions read and not yet decided', () => {
    return queued().bytes
  })
  addGauge('di_ingest_incomplete_bodies_bytes', 'Bytes of incomplete bodies', incompleteBytes)
  addGauge(
    'di_ingest_delayed_refusals',
    'Delayed responses to tenants over a limit',
    delayedRefusals,
  )
}

function createRefusedCounter(metrics: Metrics): (refusal: Refusal) => void {
  const refused = metrics.counter('di_ingest_refused_total', 'Refused submissions', [
    'status',
    'reason',
  ])
  const toLabels = ({ reason, problem }: Refusal) => ({
    status: String(problemStatus(problem.code)),
    reason,
  })
  startAtZero(refused, Object.values(refusals).map(toLabels))
  const limited = metrics.counter(
    'di_ingest_limited_total',
    'Submissions refused because their tenant is over its own limit, by limit',
    ['tenant', 'limit'],
  )
  return (refusal) => {
    refused.inc(toLabels(refusal))
    const { reason, limitedTenantId: tenant } = refusal
    if (tenant !== undefined) limited.inc({ tenant, limit: reason })
  }
}

function createBatchCounter(metrics: Metrics): IngestObserver['clientBatch'] {
  const batches = metrics.counter(
    'di_ingest_client_batches_total',
    'Batches that clients sent, by the code of their answer',
    ['code'],
  )
  startAtZero(batches, [{ code: 'accepted' }, { code: 'unavailable' }])
  const events = metrics.counter(
    'di_ingest_client_batch_events_total',
    'Events of answered batches of clients, by what became of them',
    ['outcome'],
  )
  const outcomes = ['accepted', 'invalid', 'unavailable'] as const
  startAtZero(
    events,
    outcomes.map((outcome) => ({ outcome })),
  )
  return (code, counts) => {
    batches.inc({ code })
    for (const outcome of outcomes) if (counts !== null) events.inc({ outcome }, counts[outcome])
  }
}

function createCommitObservers(
  metrics: Metrics,
  streams: readonly TelemetryStream[],
  onStorage: (stream: number, fault: string | null) => void,
): CommitObserver[] {
  const events = metrics.histogram('di_ingest_batch_events', 'Events per stored message', {
    buckets: eventsBuckets,
  })
  const bytes = metrics.histogram('di_ingest_batch_bytes', 'Bytes per stored message', {
    buckets: bytesBuckets,
  })
  const seconds = metrics.histogram(
    'di_ingest_publish_seconds',
    'Time from a publish to its acknowledgement',
    { buckets: secondsBuckets },
  )
  const retries = metrics.counter('di_ingest_publish_retries_total', 'Retried publishes', [
    'fault',
    'stream',
  ])
  const duplicates = metrics.counter(
    'di_ingest_publish_duplicates_total',
    'Retried publishes that JetStream had stored before, because their acknowledgement was lost',
  )
  const failures = metrics.counter(
    'di_ingest_publish_failures_total',
    'Batches that could not be stored in time',
    ['fault', 'stream'],
  )
  return streams.map((stream): CommitObserver => {
    const labels = toStreamLabels(stream, streams.length)
    startAtZero(
      failures,
      publishFaults.map((fault) => ({ ...labels, fault })),
    )
    return {
      stored: (batch) => {
        onStorage(stream.number, null)
        events.observe(batch.events)
        bytes.observe(batch.bytes)
        seconds.observe(batch.tookMs / 1000)
        if (batch.duplicate) duplicates.inc()
      },
      retried: (fault) => retries.inc({ ...labels, fault }),
      failed: ({ fault }) => {
        onStorage(stream.number, fault)
        failures.inc({ ...labels, fault })
      },
    }
  })
}
