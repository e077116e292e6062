/** The hint that a scorer publishes and the delivery process receives. */
import { z } from 'zod'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import { idCharactersMax } from '#shared/core/base/limits/telemetry.ts'

/** A hint that a delivery is due. The row in Postgres is the source of truth. */
export const deliveryHintSchema = z.object({
  tenant_id: z.string().regex(tenantIdPattern),
  delivery_id: z.string().max(idCharactersMax),
})
export type DeliveryHint = z.infer<typeof deliveryHintSchema>
