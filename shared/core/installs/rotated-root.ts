/** The answer to a rotation of an install root, and to the end of the one before. */
import { z } from 'zod'

export const rotatedRootSchema = z.object({
  tenant_id: z.string(),
  epoch: z.int().nullable().describe('of the root that makes tokens'),
  previous_epoch: z.int().nullable().describe('of the root that is valid beside it; null for none'),
  confirmed_edges: z.array(z.string()),
  lease_expired_edges: z.array(z.string()),
})
export type RotatedRoot = z.infer<typeof rotatedRootSchema>
