/**
 * What a bad receiver does to a request, and how often. Which request meets what follows from the
 * seed, the delivery and how often it was sent, so it depends on no order and no time.
 */
import { hashToUnit } from '../../../services/fleet/phones/random.ts'

/** `ok` is what is left over. */
export const receiverFaults = [
  '500',
  '503',
  '503 with Retry-After',
  '429 with Retry-After',
  /** Never answered. */
  'hang',
  /** The connection is reset before the body is read. */
  'reset at head',
  /** It is reset once the whole body is there. */
  'reset at body',
  /** Half a head of an answer, then the end. */
  'half a head',
  /** The head of a 200 and half of its body, then the end: whether it counts is the sender's. */
  'cut answer',
  /** A 200, but late. */
  'slow',
] as const
export type ReceiverFault = (typeof receiverFaults)[number]
export type ReceiverAct = ReceiverFault | 'ok'

/** The share of requests that meet each fault; together below 1. */
export type FaultShares = Record<ReceiverFault, number>

/** Three in ten. A hang costs a slot for fifteen seconds, so there are few of them. */
export const fullShares: FaultShares = {
  '500': 0.05,
  '503': 0.02,
  '503 with Retry-After': 0.03,
  '429 with Retry-After': 0.02,
  hang: 0.02,
  'reset at head': 0.03,
  'reset at body': 0.03,
  'half a head': 0.02,
  'cut answer': 0.01,
  slow: 0.07,
}

/** The head of these answers has a status; the others have none, or none that arrives in time. */
export const actStatus: Partial<Record<ReceiverAct, number>> = {
  ok: 200,
  slow: 200,
  'cut answer': 200,
  '500': 500,
  '503': 503,
  '503 with Retry-After': 503,
  '429 with Retry-After': 429,
}

/** @param n how often this delivery has been sent, this time included */
export function chooseAct(
  shares: FaultShares,
  seed: number,
  { deliveryId, n }: { deliveryId: string; n: number },
): ReceiverAct {
  let left = hashToUnit(`${seed} ${deliveryId} ${n}`)
  for (const fault of receiverFaults) {
    left -= shares[fault]
    if (left < 0) return fault
  }
  return 'ok'
}
