/** The trace of an attempt: a span that continues the trace of the event behind the alert. */
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'
import type { FreshClaim } from './attempt-delivery.ts'

/**
 * Makes an attempt. A traced one sends the `traceparent` of its span, so that the receiver can
 * continue the trace; any other sends none.
 * @param tracing null while it is off
 */
export async function traceAttempt(
  tracing: Tracing | null,
  claimed: FreshClaim,
  attempt: (claimed: FreshClaim) => Promise<DeliveryOutcome>,
): Promise<DeliveryOutcome> {
  if (claimed.traceparent === null) return attempt(claimed)
  const span =
    tracing?.continueTrace('deliver webhook', claimed.traceparent, {
      kind: 'client',
      attributes: {
        'di.tenant_id': claimed.tenantId,
        'di.delivery_id': claimed.deliveryId,
        'di.attempt': claimed.attempts + 1,
      },
    }) ?? null
  const outcome = await attempt({ ...claimed, traceparent: span?.traceparent ?? null })
  const { attempt: made, next } = outcome
  span?.end({
    attributes: {
      'di.delivery_state': next.state,
      ...(made?.status == null ? {} : { 'http.response.status_code': made.status }),
      ...(made?.errorKind == null ? {} : { 'error.type': made.errorKind }),
    },
    isFailed: made?.errorKind != null,
  })
  return outcome
}
