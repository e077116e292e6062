// Counters that alert rules watch show 0 before their first event.

import { expect, it } from 'vitest'
import { toTelemetryStream } from '#shared/core/telemetry/telemetry-streams.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createIngestObserver } from '../../../services/ingest/metrics.ts'
import { createScorerObserver } from '../../../services/scorer/metrics.ts'

it('the first refusal, failed publish, dead letter and lost one is an increase', async () => {
  const metrics = createMetrics('any', { isThread: true })
  const backlog = {
    waiting: () => ({ events: 0, bytes: 0 }),
    queued: () => ({ requests: 0, bytes: 0 }),
    incompleteBytes: () => 0,
    delayedRefusals: () => 0,
  }
  createIngestObserver(metrics, { backlog, streams: [toTelemetryStream(1)], nowMs: () => 0 })
  createScorerObserver(metrics, () => 0)
  const page = await metrics.registry.metrics()
  for (const series of [
    'di_ingest_refused_total{status="503",reason="not_stored",service="any"} 0',
    'di_ingest_publish_failures_total{fault="stream_full",service="any"} 0',
    'di_events_dropped_total{reason="unproven_batch",service="any"} 0',
    'di_dead_letters_lost_total{loss="tenant_share",service="any"} 0',
  ]) {
    expect(page).toContain(series)
  }
})
