/** States of a delivery that operators see: `sending` is one with a claim. */

export const deliveryStates = ['pending', 'sending', 'delivered', 'failed', 'skipped'] as const
export type DeliveryState = (typeof deliveryStates)[number]
