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
  names: z
    .object({
      in_last_hour: z.number().int().describe('different unknown names of the last hour'),
      limit: z
        .number()
        .int()
        .describe('names that become columns for analysts; an hour without events frees one'),
      freed_at: z.string().nullable().describe('when an operator last freed them'),
    })
    .describe('how many of the names that become columns are in use'),
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

export const freedNamesSchema = z.object({
  tenant_id: z.string(),
  freed_at: z.string().describe('scorers forget the names within seconds'),
})
