/**
 * Publishes hints over JetStream that deliveries are due. The row in Postgres is the truth: the
 * sweep of the delivery process finds deliveries whose hint was lost.
 */
import type { DeliveryHint } from '#shared/core/deliveries/delivery-hint.ts'
import { deliveryHintSubject } from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '#shared/io/nats/connection.ts'

/**
 * Publishes one hint per tenant with new deliveries, with a short timeout.
 * @param onFailure called for each hint that was not stored
 */
export async function publishDeliveryHints(
  nats: Nats,
  deliveries: readonly { tenantId: string; deliveryId: string }[],
  onFailure: () => void,
): Promise<void> {
  const firstOf = new Map<string, string>()
  for (const { tenantId, deliveryId } of deliveries) {
    if (!firstOf.has(tenantId)) firstOf.set(tenantId, deliveryId)
  }
  if (!nats.connected()) {
    for (const _ of firstOf) onFailure()
    return
  }
  await Promise.all(
    [...firstOf].map(async ([tenantId, deliveryId]) => {
      const hint: DeliveryHint = { tenant_id: tenantId, delivery_id: deliveryId }
      try {
        await nats.jetstream.publish(deliveryHintSubject, JSON.stringify(hint), {
          msgID: deliveryId,
          timeout: 1_000,
        })
      } catch {
        onFailure()
      }
    }),
  )
}

/**
 * Publishes that a tenant has deliveries due, new or old. Unlike the hint of a new delivery it is
 * never deduplicated.
 * @param deliveryId one of them
 * @throws when it was not stored; the sweep then finds them
 */
export async function publishTenantHint(
  nats: Nats,
  { tenantId, deliveryId }: { tenantId: string; deliveryId: string },
): Promise<void> {
  if (!nats.connected()) throw new Error('NATS is not connected')
  const hint: DeliveryHint = { tenant_id: tenantId, delivery_id: deliveryId }
  await nats.jetstream.publish(deliveryHintSubject, JSON.stringify(hint), { timeout: 1_000 })
}
