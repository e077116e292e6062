/** The admin API's requests and answers about backtests: lines of JSON, the last one the report. */
import { z } from 'zod'
import { parseInstant } from '#shared/core/base/instants.ts'

export const backtestQuery = z.strictObject({
  since: z
    .string()
    .refine((text) => parseInstant(text) !== null, 'must be an ISO-8601 time')
    .optional()
    .describe('events that were received before it are left out'),
})

const count = z.number().int()
const counts = z.record(z.string(), count)
const score = z.number().int().min(0).max(100)

const moves = {
  before: count.describe('alerts that the stored verdicts deserve'),
  after: count.describe('alerts that the verdicts of the new policy deserve'),
  gained: count.describe('new ones; without those that exist already, see `correlated`'),
  lost: count.describe('without those that velocity and the like raised, see `correlated`'),
}
const movesSchema = z.object(moves)
const namedMovesSchema = z.object({ name: z.string(), ...moves })

const progressSchema = z.object({
  slices_done: count,
  slices: count,
  devices: z
    .union([
      z.object({ from: z.string().nullable(), to: z.string().nullable() }),
      z.literal('test devices'),
    ])
    .nullable()
    .describe('the devices that were done last: from an id up to before another; null is open'),
  events_done: count,
  events: count.describe('about so many in all'),
  elapsed_ms: count,
})

const scorerFields = { policy_hash: z.string(), events: count }

const reportSchema = z
  .object({
    tenant_id: z.string(),
    since: z.string().nullable(),
    policy: z.object({ name: z.string(), policy_hash: z.string() }),
    events: count.describe('each once, however often it was delivered'),
    sessions: count.describe('those that either policy holds anything against'),
    matrix: z
      .record(z.string(), counts)
      .describe('events by old, then by new action: `matrix.ALLOW.REVIEW` would be reviewed'),
    alerts: movesSchema.describe('a session has one for each action at most'),
    by_action: z.record(z.string(), movesSchema),
    by_disposition: z
      .array(z.object({ name: z.string(), before: count, lost: count }))
      .describe('the alerts of before by their disposition now; NOT_STORED: nobody has it'),
    by_platform: z.array(namedMovesSchema),
    by_sdk_version: z.array(namedMovesSchema),
    by_flag: z
      .array(z.object({ name: z.string(), gained: count, lost: count }))
      .describe('gained by flags of the new verdict, lost by those of the old'),
    correlated: z
      .object({
        alerts: count,
        by_action: counts,
        by_disposition: counts,
        may_be_lost: count.describe('the session no longer deserves it by signals alone'),
        would_be_own: count.describe('the session now deserves by signals what was raised anyway'),
      })
      .describe('alerts that velocity and the like raised above the score: not told from signals'),
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
      .describe('stored events scored again by the policy that scored them; first: event ids'),
    scored_by: z.array(z.object({ ...scorerFields, name: z.string() })),
    not_recomputed: z
      .array(z.object({ ...scorerFields, why: z.enum(['not_stored', 'too_many']) }))
      .describe('policies whose events were not scored again'),
    duration_ms: count,
  })
  .describe('What the policy would have done.')

export const backtestLinesSchema = z
  .union([
    z.object({ progress: progressSchema }),
    z.object({ report: reportSchema }),
    z.object({ problem: z.looseObject({ code: z.string(), detail: z.string() }) }),
  ])
  .describe('One line of `application/x-ndjson`: progress, and at the end the report or a problem.')
