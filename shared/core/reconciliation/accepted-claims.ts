/** What edges claim to have accepted: one side of reconciliation. */
import { z } from 'zod'

/** One edge's claims on one hour, a part of the tenants each; `*` for any. */
export const acceptedKey = (edgeId: string, hour: number | '*', part: number | '*'): string =>
  `${edgeId}.${hour}.${part}`

/** What an edge has answered with a 200 since its start, by tenant. */
export const acceptedSchema = z.object({
  edge_id: z.string(),
  hour_ms: z.number().int(),
  accepted: z.record(z.string(), z.number().int()),
})
export type AcceptedClaim = z.infer<typeof acceptedSchema>
