/**
 * Traces of submissions: a span of the request, and one of the publish of its event, which the
 * scorer continues. Only submissions with a valid signature have spans.
 */
import { problemStatus } from '#shared/core/http/problem.ts'
import { encodeTracedEvents } from '#shared/core/tracing/traced-events.ts'
import type { Span, Tracing } from '#shared/io/tracing/tracing.ts'
import { type Acceptance, isVerified } from '../decide-submission.ts'
import type { Refusal } from '../refusals.ts'

/**
 * Starts the trace of a verified submission.
 * @param agoMs how long ago its body was complete
 * @param traceparent the client's header
 * @returns null when it is not sampled
 */
export function traceSubmission(
  tracing: Tracing,
  decision: Acceptance | Refusal,
  { agoMs, traceparent }: { agoMs: number; traceparent: string | string[] | undefined },
): Span | null {
  if (!isVerified(decision)) return null
  const attributes =
    decision.kind === 'refused'
      ? { 'di.tenant_id': decision.verifiedTenantId! }
      : {
          'di.tenant_id': decision.tenantId,
          'di.event_id': decision.eventId,
          'di.action': decision.action,
        }
  return tracing.startTrace('ingest telemetry', {
    kind: 'server',
    agoMs,
    link: traceparent,
    attributes,
  })
}

export function endRefused(span: Span | null, { reason, problem }: Refusal): void {
  const status = problemStatus(problem.code)
  const attributes = { 'http.response.status_code': status, 'di.refusal': reason }
  span?.end({ attributes, isFailed: status >= 500 })
}

/**
 * Publishes a batch, with a span of each traced event in it.
 * @param publish gets the header that names the traced events
 */
export async function tracePublish<T>(
  batch: readonly { span: Span | null; acceptance: Pick<Acceptance, 'eventId'> }[],
  publish: (tracedEvents: string) => Promise<T>,
): Promise<T> {
  const traced = batch.flatMap(({ span, acceptance: { eventId } }) =>
    span === null ? [] : [{ eventId, span: startPublish(span, batch.length) }],
  )
  if (traced.length === 0) return publish('')
  let isFailed = true
  try {
    const header = traced.map(({ eventId, span: { traceparent } }) => ({ eventId, traceparent }))
    const outcome = await publish(encodeTracedEvents(header))
    isFailed = false
    return outcome
  } finally {
    for (const { span } of traced) span.end({ isFailed })
  }
}

function startPublish(request: Span, events: number): Span {
  return request.startChild('publish telemetry', {
    kind: 'producer',
    attributes: { 'messaging.system': 'nats', 'messaging.batch.message_count': events },
  })
}
