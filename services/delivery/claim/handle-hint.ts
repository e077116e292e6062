/**
 * Wakes the queues that a hint names. A hint is acknowledged as soon as its queues are ready: the
 * delivery itself is a row in Postgres, so a lost, late or repeated hint costs at most one sweep.
 */
import { deliveryHintSchema } from '#shared/core/deliveries/delivery-hint.ts'
import type { DeliveryQueue } from '#shared/io/deliveries/claim-deliveries.ts'
import type { DeliveryMetrics } from '../metrics.ts'

/**
 * Handles one hint.
 * @param data the message: JSON of a DeliveryHint
 */
export function handleHint(
  data: Uint8Array,
  wake: (queue: DeliveryQueue) => void,
  metrics: Pick<DeliveryMetrics, 'hints'>,
): void {
  const hint = deliveryHintSchema.safeParse(parseJson(data))
  if (!hint.success) {
    metrics.hints.inc({ result: 'unreadable' })
    return
  }
  metrics.hints.inc({ result: 'followed' })
  const tenantId = hint.data.tenant_id
  // A hint announces a new delivery, or an old one that an operator replays.
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
