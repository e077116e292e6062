/** Schemas of the admin API: rule performance and prevalence spikes. */
import { z } from 'zod'
import { instantParameter } from '#shared/core/http/api-schemas.ts'
import { money, outcomeCounts, outcomesAsOf, rateSchema } from './outcome-schemas.ts'

export const rulePerformanceQuery = z.strictObject({
  since: instantParameter('Only alerts raised, and sessions begun, at this instant or later.'),
  until: instantParameter('Only those before this instant.'),
})

const share = z.number().min(0).max(1)

const precisionSchema = z.object({
  what: z.string().describe('a flag, a reason with its evidence, or category.signal'),
  alerts: z.number().int(),
  confirmed: z.number().int(),
  false_positive: z.number().int(),
  precision: share.nullable().describe('null with fewer than 10 dispositions'),
  precision_low: share.describe('with precision_high: the 95 % confidence interval'),
  precision_high: share,
  lift: z.number().nullable().describe('precision / base_precision'),
})

const outcomesSchema = z.object({
  as_of: outcomesAsOf,
  labels: z.number().int().describe('labels that count'),
  labels_without_session: z.number().int().describe('of them, those that cover no known session'),
  ...outcomeCounts,
  flags: z
    .array(
      z.object({
        flag: z.string(),
        fraud: z.number().int().describe('fraudulent sessions with the flag'),
        recall: rateSchema.describe('its share of all fraudulent sessions'),
        honest: z.number().int().describe('honest sessions with the flag'),
        honest_share: rateSchema.describe('its share of all honest sessions'),
        losses: z.array(z.object({ currency: z.string(), lost: money('in these sessions') })),
      }),
    )
    .describe('of the flags of a session’s highest scores'),
})

export const rulePerformanceSchema = z.object({
  since: z.string().nullable(),
  alerts: z.number().int(),
  confirmed: z.number().int(),
  false_positive: z.number().int(),
  base_precision: share.nullable().describe('of all alerts with a disposition'),
  flags: z.array(precisionSchema),
  reasons: z.array(precisionSchema),
  signals: z.array(precisionSchema),
  outcomes: outcomesSchema.describe('of sessions that began since, by labels and dispositions'),
})

export const prevalenceSpikesQuery = z.strictObject({
  open: z
    .stringbool()
    .default(false)
    .describe('only spikes that have not ended')
    .meta({
      examples: ['true', 'false'],
    }),
  affected: z
    .stringbool()
    .default(true)
    .describe(
      'whether the devices and alerts of the ten newest are read now, which takes a query of the ' +
        'events for each; without, the numbers are those of the last comparison',
    )
    .meta({
      examples: ['true', 'false'],
    }),
})

export const prevalenceSpikesSchema = z.object({
  checked_at: z.string().nullable().describe('the last comparison'),
  data: z.array(
    z.object({
      platform: z.string(),
      sdk_version: z.string(),
      signal: z.string().describe('category.signal'),
      started_at: z.string().describe('the start of the 24 hours in which it was found'),
      checked_at: z.string(),
      ended_at: z.string().nullable(),
      share,
      earlier_share: share.nullable(),
      elsewhere_share: share.nullable(),
      z_score: z.number(),
      devices: z.number().int().describe('devices of the version with the signal since then'),
      alerts: z.number().int().describe('their alerts whose reasons name the signal'),
      device_ids: z.array(z.string()).describe('at most 100; only for the ten newest spikes'),
      alert_ids: z
        .array(z.string())
        .describe('at most 100, newest first; only for the ten newest spikes'),
    }),
  ),
})
