/** The route of the scores of a fleet, from which a browser computes what thresholds mean. */
import { z } from 'zod'
import { dayMs, toIso } from '#shared/core/base/instants.ts'
import {
  scoreDaysDefault,
  scoreDaysMax,
  scoreReadLimits,
} from '#shared/core/base/limits/outcomes.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { ScoreStore } from '#shared/io/outcomes/score-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type ScoreRouteDeps = {
  postgres: Queryable
  scores: Pick<ScoreStore, 'readScores' | 'countScores'>
  wallMs: () => number
}

const scoresQuery = z.strictObject({
  days: z.coerce
    .number()
    .int()
    .min(1)
    .max(scoreDaysMax)
    .default(scoreDaysDefault)
    .describe('Sessions that began in so many days.'),
})

const byScore = z.array(z.number().int()).length(101)

const scoresSchema = z
  .object({
    as_of: z
      .string()
      .nullable()
      .describe('when labels and dispositions were copied; they come late'),
    since: z.string(),
    until: z.string(),
    days: z
      .number()
      .describe('from the first session since then; at least 1, and 0 without a session'),
    counts: z
      .object({ fraud: byScore, legitimate: byScore, unlabelled: byScore })
      .describe('sessions by risk score, 0 to 100, as decided; by what they turned out to be'),
    honest_users: byScore.describe(
      'users and accounts of legitimate sessions, by the highest risk score of these',
    ),
  })
  .describe('Risk scores of a fleet: a threshold raises an alert for a session with it or more.')

/** Adds the route. */
export function addScoreRoutes(
  app: ConsoleApp,
  { limited, ...deps }: ScoreRouteDeps & { limited: QueryLimiter },
): void {
  const reject = rejectUnavailable('The scores cannot be read at the moment.')
  const read: ScoreStore['readScores'] = (range) => deps.scores.readScores(range)
  const readScores = limited('scores', scoreReadLimits, read)
  app.get(
    '/tenants/:tenant_id/policy/scores',
    {
      schema: {
        operationId: 'findPolicyScores',
        tags: ['Policies'],
        summary: 'How sessions score, by what they turned out to be',
        params: tenantParams,
        querystring: scoresQuery,
        response: { 200: scoresSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { days } }) => {
      await requireTenant(deps.postgres, tenantId)
      const untilMs = deps.wallMs()
      const sinceMs = untilMs - days * dayMs
      const found = await readScores({ tenantId, sinceMs, untilMs }).catch(reject)
      return {
        as_of: found.asOfMs === null ? null : toIso(found.asOfMs),
        since: toIso(sinceMs),
        until: toIso(untilMs),
        days: found.days,
        counts: found.counts,
        honest_users: found.honestUsers,
      }
    },
  )
}
