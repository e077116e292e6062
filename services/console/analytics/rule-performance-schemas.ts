/** Schemas of the admin API: rule performance and prevalence spikes. */
import { z } from 'zod'
import { parseInstant } from '#shared/core/base/instants.ts'

export const rulePerformanceQuery = z.strictObject({
  since: z
    .string()
    .refine((text) => parseInstant(text) !== null, 'must be an ISO-8601 time')
    .optional()
    .describe('alerts that were raised before it are left out'),
})

const share = z.number().min(0).max(1)

const precisionSchema = z.object({
  what: z.string().describe('a flag; a reason and what it was seen from; or category.signal'),
  alerts: z.number().int(),
  confirmed: z.number().int(),
  false_positive: z.number().int(),
  precision: share.nullable().describe('null where fewer than 10 were judged'),
  precision_low: share.describe('with precision_high, where the truth is with 95 % confidence'),
  precision_high: share,
  lift: z.number().nullable().describe('precision / base_precision'),
})

export const rulePerformanceSchema = z.object({
  since: z.string().nullable(),
  alerts: z.number().int(),
  confirmed: z.number().int(),
  false_positive: z.number().int(),
  base_precision: share.nullable().describe('of all alerts that were judged'),
  flags: z.array(precisionSchema),
  reasons: z.array(precisionSchema),
  signals: z.array(precisionSchema),
})

export const prevalenceSpikesQuery = z.strictObject({
  open: z
    .stringbool()
    .default(false)
    .describe('only those that are not over')
    .meta({
      examples: ['true', 'false'],
    }),
})

export const prevalenceSpikesSchema = z.object({
  checked_at: z.string().nullable().describe('when shares were compared last'),
  data: z.array(
    z.object({
      platform: z.string(),
      sdk_version: z.string(),
      signal: z.string().describe('category.signal'),
      started_at: z.string().describe('the beginning of the 24 hours in which it was found'),
      checked_at: z.string(),
      ended_at: z.string().nullable(),
      share,
      earlier_share: share.nullable(),
      elsewhere_share: share.nullable(),
      z_score: z.number(),
      devices: z.number().int().describe('devices of the version that had it since then'),
      alerts: z.number().int().describe('their alerts whose reasons name it'),
      device_ids: z.array(z.string()).describe('at most 100; of the ten newest spikes'),
      alert_ids: z.array(z.string()).describe('at most 100, newest first; likewise'),
    }),
  ),
})
