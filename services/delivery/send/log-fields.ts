/** The fields of every log line about one delivery. */
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'

type LoggedDelivery = Pick<DeliveryOutcome, 'tenantId' | 'deliveryId' | 'alertId'>

export const toLogFields = ({ tenantId, deliveryId, alertId }: LoggedDelivery) => ({
  tenant_id: tenantId,
  delivery_id: deliveryId,
  alert_id: alertId,
})
