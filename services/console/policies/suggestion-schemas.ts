/** Schemas of suggested policies: the query, and the lines of the response. */
import { z } from 'zod'
import { policySchema } from '#shared/core/policies/policy.ts'
import { outcomeCounts } from '../analytics/outcome-schemas.ts'

/** Sessions of a quarter: fraud is known some weeks after it happened. */
const suggestionDaysDefault = 90
/** As long as raw events are kept at most. */
const suggestionDaysMax = 400

const flag = z.enum(['true', 'false']).default('false')

export const suggestionQuery = z.strictObject({
  days: z.coerce
    .number()
    .int()
    .min(1)
    .max(suggestionDaysMax)
    .default(suggestionDaysDefault)
    .describe('Sessions of so many days.'),
  caps: flag.describe(
    '`true`: caps, groups, halving and strong evidence may go, so that points add up.',
  ),
  floors: flag.describe('`true`: floors go where enough is known of their signals.'),
  seed: z.coerce.number().int().min(0).max(2_147_483_647).default(1).describe('Of the ranges.'),
})

const count = z.number().int()
const number = z.number()
const range = z.object({ low: number, high: number })
const rate = z
  .object({ rate: number.nullable(), low: number, high: number })
  .describe('With its interval of 95 %; the rate is null where there are too few cases to say.')

const thresholdFigures = z.object({
  threshold: count,
  alerts: count.describe('sessions with this score or more'),
  alerts_a_day: number,
  caught: count,
  missed: count,
  harmed: count.describe('legitimate sessions among them'),
  recall: rate,
  precision: rate,
  harm: rate,
  harmed_users: outcomeCounts.harmed_users,
  losses: outcomeCounts.losses.describe('with this threshold'),
})

const figures = z.object({
  review: thresholdFigures,
  block: thresholdFigures,
  at_equal_alerts: z.object({
    caught: number,
    harmed: number,
    recall: number,
    precision: number,
    recall_range: range.describe('of sessions drawn again'),
  }),
  deciles: z
    .array(z.object({ from: count, to: count, sessions: count, expected: number, observed: rate }))
    .describe('tenths of the labelled sessions by score'),
})

const totals = z.object({ fraud: count, legitimate: count, unlabelled: count, judged: count })

const weightSchema = z.object({
  feature: z.string(),
  before: count,
  after: count,
  why: z
    .enum(['weighed', 'useless', 'too_few'])
    .describe('`too_few`: it keeps its points, or what its cases allow at most'),
  support: totals.describe('older sessions with it'),
  effect: z
    .object({ log_odds: number, low: number, high: number })
    .nullable()
    .describe('what it adds to the log odds of fraud, 0 without a weight; its interval of 95 %'),
  points: range.nullable().describe('the interval in points; null without a weight'),
})

const thresholds = z.object({ review: count, block: count })
const found = z.object({ fraud: count, labelled: count, precision: rate })

const suggestionSchema = z.object({
  policy: policySchema.describe('A draft: nothing sets it.'),
  weights: z.array(weightSchema),
  factor: number.describe('points of one unit of log odds'),
  thresholds: z.object({ before: thresholds, after: thresholds }),
  totals: z.object({ older: totals, newer: totals }),
  days: z.object({ older: number, newer: number }),
  compared: z.object({
    active: figures,
    suggested: figures,
    alerts: count.describe('of the active policy, at which recall is compared'),
    recall_gained: number,
    recall_gained_range: range,
  }),
  rules: z.array(
    z.object({
      features: z.array(z.string()),
      found: found.describe('in the older sessions'),
      tested: found
        .extend({ recall: rate, alerts_a_week: number })
        .describe('in the newer sessions'),
      floor: z
        .object({
          signals: z.array(z.string()),
          need: z.enum(['any', 'all']),
          least: z
            .record(z.string(), z.union([z.literal(1), z.object({ whenFalse: z.literal(1) })]))
            .describe('weights for those of its signals that score nothing: it would never hold'),
        })
        .nullable()
        .describe('null where no floor says the same'),
      group: z
        .object({ category: z.string(), signals: z.array(z.string()) })
        .nullable()
        .describe('its signals as one fact; null where they are not of one category'),
    }),
  ),
  warnings: z.array(
    z.object({
      kind: z.enum(['leak', 'separation', 'drift', 'no_better', 'few_newer']),
      feature: z.string().nullable(),
      detail: z.string(),
    }),
  ),
  seed: count,
})

const reportSchema = z
  .object({
    tenant_id: z.string(),
    as_of: z.iso.datetime().describe('labels come late: what was known then'),
    since: z.iso.datetime(),
    newer_since: z.iso.datetime().nullable().describe('sessions from then on test'),
    active: z.object({ name: z.string(), version: count, policy_hash: z.string() }),
    sessions: count,
    left_out: count.describe('sessions with an event whose pattern does not tell its score'),
    refused: z
      .object({ missing: z.array(z.object({ what: z.string(), have: count, need: count })) })
      .nullable(),
    suggestion: suggestionSchema.nullable(),
  })
  .describe('A suggested policy beside the active one, or what is missing for it.')

export const suggestionLinesSchema = z
  .union([
    z.object({ progress: z.object({ slices_done: count, slices: count }) }),
    z.object({ report: reportSchema }),
    z.object({ problem: z.looseObject({ code: z.string(), detail: z.string() }) }),
  ])
  .describe('One line of `application/x-ndjson`: progress, then the report or a problem.')
