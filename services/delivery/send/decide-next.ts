/**
 * Decides the next state of a delivery after an attempt, by the public contract: 2xx delivers it,
 * 410 ends it and switches the webhook off, anything else is retried until the schedule is
 * exhausted.
 */
import { parseRetryAfterMs, retryDelayMs } from '#shared/core/deliveries/retry-schedule.ts'
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'

type Attempted = {
  /** Number of the attempt since the delivery was created or last replayed, from 1. */
  attempt: number
  /** Whether a failure is final: a test event is not retried. */
  once: boolean
  /** Null when there was no response. */
  status: number | null
  /** The `Retry-After` header, as sent. */
  retryAfter: string | undefined
}

export type NextDecision = {
  next:
    | { state: 'pending'; delayMs: number }
    | Exclude<DeliveryOutcome['next'], { state: 'pending' }>
  /** The receiver answered 410. */
  gone: boolean
}

const gone = 410
/** Only these statuses may delay the next attempt with `Retry-After`. */
const mayDelay = [429, 503]

/**
 * @param nowMs the wall clock: `Retry-After` may be a date
 * @param random a number in [0, 1) for the jitter
 */
export function decideNext(attempted: Attempted, nowMs: number, random: number): NextDecision {
  const { attempt, status } = attempted
  if (status !== null && status >= 200 && status < 300) {
    return { next: { state: 'delivered' }, gone: false }
  }
  if (status === gone) return { next: { state: 'failed', reason: 'gone' }, gone: true }
  const requestedMs =
    status !== null && mayDelay.includes(status)
      ? parseRetryAfterMs(attempted.retryAfter, nowMs)
      : null
  const delayMs = attempted.once ? null : retryDelayMs(attempt, random, requestedMs)
  if (delayMs === null) return { next: { state: 'failed', reason: 'exhausted' }, gone: false }
  return { next: { state: 'pending', delayMs }, gone: false }
}
