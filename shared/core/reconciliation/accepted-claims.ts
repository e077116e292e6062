/** The events that edges report as accepted: the first count of reconciliation. */
import { z } from 'zod'

/** The KV key of an edge's report on one hour and one part of its tenants; `*` for any. */
export const acceptedKey = (edgeId: string, hour: number | '*', part: number | '*'): string =>
  `${edgeId}.${hour}.${part}`

/** Events of an hour that an edge answered with a 200 since its start, by tenant. */
export const acceptedSchema = z.object({
  edge_id: z.string(),
  hour_ms: z.number().int(),
  accepted: z.record(z.string(), z.number().int()),
})
export type AcceptedClaim = z.infer<typeof acceptedSchema>
