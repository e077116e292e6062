/** States of deliveries in words and colours. Pure. */
import type { DeliveryState } from '#shared/core/deliveries/delivery-states.ts'
import type { Tone } from '../../components/badge.tsx'

export const deliveryTones: Record<DeliveryState, Tone> = {
  pending: 'accent',
  sending: 'accent',
  delivered: 'good',
  failed: 'bad',
  skipped: 'warn',
}

const endReasons: Record<string, string> = {
  exhausted: 'the receiver did not accept it in time',
  gone: 'the receiver answered 410: do not send again',
  no_webhook: 'no webhook was set up',
}

/** Why a delivery ended undelivered. */
export const toEndText = (reason: string): string => endReasons[reason] ?? reason

type Delivery = {
  event: string
  state: DeliveryState
  reason: string | null
  ended_at: string | null
  attempts: readonly { status: number | null; error: string | null }[]
}

/** A test event goes before all that wait, and once: until its end it is being sent. */
export const toShownState = ({
  event,
  state,
  ended_at,
}: Pick<Delivery, 'event' | 'state' | 'ended_at'>): DeliveryState =>
  event === 'webhook.test' && ended_at === null ? 'sending' : state

/** The one state of a test event, in a sentence. */
export function toTestText(delivery: Delivery): string {
  const { reason, attempts } = delivery
  const last = attempts.at(-1)
  const state = toShownState(delivery)
  if (state === 'sending') return 'The test event is being sent.'
  if (state === 'delivered') {
    return `The test event was delivered: the receiver answered ${last?.status}.`
  }
  const answer = typeof last?.status === 'number' ? `the receiver answered ${last.status}` : null
  const why = answer ?? last?.error ?? (reason === null ? 'it was not tried' : toEndText(reason))
  return `The test event was not delivered: ${why}.`
}
