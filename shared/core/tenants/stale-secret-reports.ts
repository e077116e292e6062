/** What edges report about requests that are still signed with a retired secret. */
import { z } from 'zod'

/** One edge's report on one tenant; an edge's id is of letters, digits, `-` and `_`. */
export const staleSecretKey = (tenantId: string, edgeId: string): string => `${tenantId}.${edgeId}`

/** Requests that one edge refused because they were signed with a tenant's retired secret. */
export const staleSecretReportSchema = z.object({
  /** Which secret: a later rotation begins at zero. */
  last4: z.string(),
  versions: z.array(
    z.object({
      sdk_version: z.string(),
      requests: z.number().int(),
      /** How long ago the last one was, when this was reported: no clock is compared. */
      age_ms: z.number(),
    }),
  ),
})
export type StaleSecretReport = z.infer<typeof staleSecretReportSchema>
