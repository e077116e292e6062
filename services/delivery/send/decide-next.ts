/**
 * What becomes of a delivery after an attempt, by the public contract: 2xx delivers it, 410 ends it
 * and the webhook, anything else is tried again on the schedule until that is exhausted. Pure.
 */
import { parseRetryAfterMs, retryDelayMs } from '#shared/core/deliveries/retry-schedule.ts'
import type { DeliveryOutcome } from '#shared/io/deliveries/delivery-store.ts'

export type Attempted = {
  /** Which attempt it was since the delivery was made or last replayed, from 1. */
  attempt: number
  /** Whether a failure is tried again at all: a test event is not. */
  once: boolean
  /** Null when no answer came. */
  status: number | null
  /** The answer's `Retry-After`, as sent. */
  retryAfter: string | undefined
}

export type NextDecision = {
  next: /** To be tried again after a wait. */
  { state: 'pending'; delayMs: number } | Exclude<DeliveryOutcome['next'], { state: 'pending' }>
  /** The receiver said that it is gone for good. */
  gone: boolean
}

const gone = 410
/** Only these may ask for a later attempt: too many requests, and not available. */
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
  const askedMs =
    status !== null && mayDelay.includes(status)
      ? parseRetryAfterMs(attempted.retryAfter, nowMs)
      : null
  const delayMs = attempted.once ? null : retryDelayMs(attempt, random, askedMs)
  if (delayMs === null) return { next: { state: 'failed', reason: 'exhausted' }, gone: false }
  return { next: { state: 'pending', delayMs }, gone: false }
}
