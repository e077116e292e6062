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
