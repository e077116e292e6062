/** The edges' reports of requests that are still signed with a retired secret. */
import { z } from 'zod'

/** The KV key of an edge's report on a tenant. Edge ids have letters, digits, `-` and `_`. */
export const staleSecretKey = (tenantId: string, edgeId: string): string => `${tenantId}.${edgeId}`

/** Requests that one edge refused because they were signed with a tenant's retired secret. */
export const staleSecretReportSchema = z.object({
  /** The last characters of the secret: a later rotation starts at zero. */
  last4: z.string(),
  versions: z.array(
    z.object({
      sdk_version: z.string(),
      requests: z.number().int(),
      /** Age of the last request when this was reported, so that no clocks are compared. */
      age_ms: z.number(),
    }),
  ),
})
export type StaleSecretReport = z.infer<typeof staleSecretReportSchema>
