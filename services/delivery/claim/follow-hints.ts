/**
 * Turns hints into wakes. A hint is acknowledged as soon as its lanes are awake: the delivery
 * itself is a row in Postgres, so a hint that is lost, late or repeated costs at most one sweep.
 */
import { deliveryHintSchema } from '#shared/core/deliveries/delivery-hint.ts'
import type { Lane } from '#shared/io/deliveries/delivery-claim-store.ts'
import type { DeliveryMetrics } from '../metrics.ts'

/**
 * Handles one hint.
 * @param data the message: JSON of a DeliveryHint
 */
export function followHint(
  data: Uint8Array,
  wake: (lane: Lane) => void,
  metrics: Pick<DeliveryMetrics, 'hints'>,
): void {
  const hint = deliveryHintSchema.safeParse(parseJson(data))
  if (!hint.success) {
    metrics.hints.inc({ result: 'unreadable' })
    return
  }
  metrics.hints.inc({ result: 'followed' })
  const tenantId = hint.data.tenant_id
  // What is hinted at is new, or an old delivery that somebody wants to be sent again.
  wake({ tenantId, retry: false })
  wake({ tenantId, retry: true })
}

function parseJson(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data).toString('utf8'))
  } catch {
    return null
  }
}
