/** Schemas of backtests: the query, and the lines of the response, the last one with the report. */
import { z } from 'zod'
import { instantParameter } from '#shared/core/http/api-schemas.ts'
import { outcomeCountsSchema, outcomeMoves, outcomesAsOf } from '../analytics/outcome-schemas.ts'
import { changesSchema, namedChangesSchema } from './change-schemas.ts'

export const backtestQuery = z.strictObject({
  since: instantParameter('Only events received at this instant or later.'),
})

const count = z.number().int()
const counts = z.record(z.string(), count)
const score = z.number().int().min(0).max(100)

const alertsSchema = z.object({
  before: count.describe('alerts that the signals raised under the stored verdicts'),
  after: count.describe('alerts that they raise under the new policy'),
})

const progressSchema = z.object({
  slices_done: count,
  slices: count,
  devices: z
    .union([
      z.object({ from: z.string().nullable(), to: z.string().nullable() }),
      z.literal('test devices'),
    ])
    .nullable()
    .describe('the last range of device ids, `to` excluded; null is open'),
  events_done: count,
  events: count.describe('an estimate of all events'),
  elapsed_ms: count,
})

const scorerFields = { policy_hash: z.string(), events: count }

const reportSchema = z
  .object({
    tenant_id: z.string(),
    since: z.string().nullable(),
    policy: z.object({ name: z.string(), policy_hash: z.string() }),
    events: count.describe('distinct events'),
    sessions: count.describe('sessions with a reason under either policy'),
    matrix: z
      .record(z.string(), counts)
      .describe('events by old and new action: `matrix.ALLOW.REVIEW` would be reviewed'),
    alerts: alertsSchema.describe('a session has at most one per action'),
    by_action: z.record(z.string(), alertsSchema),
    changes: changesSchema,
    by_disposition: z
      .array(
        z.object({
          name: z.string(),
          before: count,
          lost: count.describe('their session has no alert under the new policy'),
          may_stay: count.describe('of those lost: risk features raised it, and may again'),
        }),
      )
      .describe(
        'the alerts before by current disposition. NOT_STORED: no alert of this session and ' +
          'action is stored, because risk features raised the action, a list entry decided, or ' +
          'retention or erasure removed it',
      ),
    by_platform: z.array(namedChangesSchema),
    by_sdk_version: z.array(namedChangesSchema),
    by_flag: z
      .array(namedChangesSchema)
      .describe('sessions gone or milder by their old flags, the others by their new ones'),
    correlated: z
      .object({
        alerts: count,
        by_action: counts,
        by_disposition: counts,
        may_stay: count.describe('of the sessions gone: these may still raise their alert'),
        exist_already: count.describe('of the new sessions: these raised an alert already'),
      })
      .describe('alerts raised by risk features: a backtest of signals cannot predict them'),
    outcomes: z
      .object({
        as_of: outcomesAsOf,
        before: outcomeCountsSchema.describe('as rule performance has it'),
        after: outcomeCountsSchema,
        ...outcomeMoves,
      })
      .describe(
        'of sessions that began in the range, by labels and dispositions; an alert that signals ' +
          'alone did not raise stays',
      ),
    moved_most: z.array(
      z.object({
        device_id: z.string(),
        session_id: z.string(),
        old_score: score,
        new_score: score,
      }),
    ),
    recomputed: z
      .object({ events: count, different: count, first: z.array(z.string()) })
      .describe(
        'stored events scored again with their own policy; first: ids of events that differ',
      ),
    scored_by: z.array(z.object({ ...scorerFields, name: z.string() })),
    not_recomputed: z
      .array(z.object({ ...scorerFields, why: z.enum(['not_stored', 'too_many']) }))
      .describe('policies whose events were not scored again, and why'),
    duration_ms: count,
  })
  .describe('The effect that the policy would have had.')

export const backtestLinesSchema = z
  .union([
    z.object({ progress: progressSchema }),
    z.object({ report: reportSchema }),
    z.object({ problem: z.looseObject({ code: z.string(), detail: z.string() }) }),
  ])
  .describe('One line of `application/x-ndjson`: progress, then the report or a problem.')
