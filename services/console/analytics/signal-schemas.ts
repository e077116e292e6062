/** Schemas of unknown signals. */
import { z } from 'zod'
import { limitSchema } from '../http/schemas.ts'

/** The longest window of any policy, in days. */
export const unknownSignalDaysMax = 30

export const listUnknownSignalsQuery = z.strictObject({
  days: limitSchema(unknownSignalDaysMax, 7).describe('days to look back'),
  limit: limitSchema(1_000, 100),
})

export const unknownSignalsSchema = z.object({
  days: z.number().int(),
  left_out: z
    .object({ events: z.number().int(), values: z.number().int() })
    .describe(
      'values that are stored in bodies only, because the tenant sends too many unknown names, ' +
        'and the number of events with such values',
    ),
  data: z.array(
    z.object({
      signal: z.string().describe('category.name'),
      sdk_version: z.string(),
      platform: z.string(),
      events: z.number().int().describe('distinct events'),
      devices: z.number().int(),
      first_seen_at: z.string(),
      last_seen_at: z.string(),
    }),
  ),
})
