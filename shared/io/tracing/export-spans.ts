/**
 * Exports ended spans in batches. Spans that wait are bounded; when the collector is slow, hangs or
 * is down, further ones are dropped. Nothing waits for an export.
 */
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace'
import {
  spanExportDelayMs,
  spanExportTimeoutMs,
  spansPerExportMax,
  spansWaitingMax,
} from '#shared/core/base/limits/tracing.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'

/** The value of `ExportResultCode.SUCCESS`. */
const success = 0

export function createSpanProcessor(
  exporter: SpanExporter,
  { log, metrics }: { log: Log; metrics: Metrics },
): SpanProcessor {
  const spans = metrics.counter(
    'di_trace_spans_total',
    'Spans of traces, by outcome: exported, failed, or dropped because too many waited',
    ['outcome'],
  )
  startAtZero(
    spans,
    ['exported', 'failed', 'dropped'].map((outcome) => ({ outcome })),
  )
  let waiting = 0
  let isFailing = false
  const observe = (count: number, error: Error | undefined, isExported: boolean) => {
    waiting -= count
    spans.inc({ outcome: isExported ? 'exported' : 'failed' }, count)
    if (isExported === !isFailing) return
    isFailing = !isExported
    if (isFailing) log.warn({ err: error }, 'spans cannot be exported')
    else log.info('spans can be exported again')
  }
  const batches = new BatchSpanProcessor({
    exporter: {
      export: (batch, done) =>
        exporter.export(batch, (result) => {
          observe(batch.length, result.error, result.code === success)
          done(result)
        }),
      shutdown: () => exporter.shutdown(),
    },
    maxQueueSize: spansWaitingMax,
    maxExportBatchSize: spansPerExportMax,
    scheduledDelayMillis: spanExportDelayMs,
    exportTimeoutMillis: spanExportTimeoutMs,
  })
  return {
    onStart: () => undefined,
    onEnd: (span) => {
      if (waiting >= spansWaitingMax) {
        spans.inc({ outcome: 'dropped' })
        return
      }
      waiting++
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
}
