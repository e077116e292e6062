/** Traces of the two stages of a batch: a span of each traced event, which an edge began. */
import { decodeTracedEvents } from '#shared/core/tracing/traced-events.ts'
import type { ConsumedMessage } from '#shared/io/nats/consume/consume.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'

/**
 * Runs a stage of a batch.
 * @param run gets the `traceparent` of each traced event, by event id
 */
export async function traceBatch(
  tracing: Tracing,
  stage: 'store' | 'decide',
  batch: readonly Pick<ConsumedMessage, 'tracedEvents'>[],
  run: (traceparents: ReadonlyMap<string, string>) => Promise<void>,
): Promise<void> {
  const spans = batch
    .flatMap(({ tracedEvents }) => decodeTracedEvents(tracedEvents))
    .flatMap(({ eventId, traceparent }) => {
      const attributes = {
        'di.event_id': eventId,
        'messaging.system': 'nats',
        'messaging.batch.message_count': batch.length,
      }
      const start = { kind: 'consumer', attributes } as const
      const span = tracing.continueTrace(`${stage} telemetry`, traceparent, start)
      return span === null ? [] : [{ eventId, span }]
    })
  let isFailed = true
  try {
    await run(new Map(spans.map(({ eventId, span }) => [eventId, span.traceparent])))
    isFailed = false
  } finally {
    for (const { span } of spans) span.end({ isFailed })
  }
}
