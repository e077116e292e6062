/**
 * The faults of the receiver and their shares. The fault of a request follows from the seed, the
 * delivery and the number of its tries, not from order or time.
 */
import { hashToUnit } from '../../../deploy/fleet/phones/random.ts'

/** Every other request gets `ok`. */
export const receiverFaults = [
  '500',
  '503',
  '503 with Retry-After',
  '429 with Retry-After',
  /** Never answered. */
  'hang',
  /** The connection is reset before the body is read. */
  'reset at head',
  /** The connection is reset after the whole body. */
  'reset at body',
  /** Half a head of a response, then the end. */
  'half a head',
  /**
   * The head of a 200 and half of its body, then the end. The sender decides whether that is a
   * success.
   */
  'cut answer',
  /** A 200, but late. */
  'slow',
] as const
export type ReceiverFault = (typeof receiverFaults)[number]
export type ReceiverAct = ReceiverFault | 'ok'

/** The share of requests that meet each fault; together below 1. */
export type FaultShares = Record<ReceiverFault, number>

/** Three in ten. A hang blocks a send for fifteen seconds, so there are few. */
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

/** The statuses of responses with a head; the others have none that arrives in time. */
export const actStatus: Partial<Record<ReceiverAct, number>> = {
  ok: 200,
  slow: 200,
  'cut answer': 200,
  '500': 500,
  '503': 503,
  '503 with Retry-After': 503,
  '429 with Retry-After': 429,
}

/** @param n the number of tries of this delivery so far, including this one */
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
