/**
 * Reads how the sessions of a tenant score, as they were decided: counts by risk score, by what the
 * sessions turned out to be. A session scores what its worst event did.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import { scoreQueryMaxSeconds } from '#shared/core/base/limits/outcomes.ts'
import { toLabelledSessionsSql } from '#shared/core/outcomes/coverage-sql.ts'
import { noScores, type ScoreCounts } from '#shared/core/outcomes/score-distribution.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'

/** Sessions that began at `sinceMs` or later and before `untilMs`. */
type SessionRange = { tenantId: string; sinceMs: number; untilMs: number }

export type FleetScores = {
  counts: ScoreCounts
  /** Users and accounts of legitimate sessions, by the highest score of these: 101 counts. */
  honestUsers: number[]
  /**
   * From the first session of the range to its end: at least 1, since minutes say nothing of a
   * day; 0 without a session.
   */
  days: number
  /** When labels were copied; null when nothing was yet. */
  asOfMs: number | null
}

export type ScoreStore = {
  /** Scores by outcome, for the thresholds of a policy. */
  readScores: (range: SessionRange) => Promise<FleetScores>
  /** Scores of all sessions, whatever they turned out to be: all are unlabelled here. */
  countScores: (range: SessionRange) => Promise<ScoreCounts>
}

const ofTenant = 'tenant_id = {tenant:String}'
const score = 'intDiv(risk.rank, 8)'
const inRange =
  'started_at >= fromUnixTimestamp64Milli({since:Int64}) and ' +
  'started_at < fromUnixTimestamp64Milli({until:Int64})'

// FINAL does not aggregate a part of a tuple that is read alone.
const allSql = `
  select ${score}, toFloat64(count()), toFloat64(toUnixTimestamp64Milli(min(started_at)))
  from (select started_at, risk from sessions final where ${ofTenant})
  where ${inRange}
  group by 1`

const labelledSql = `select outcome, users, ${score} as score
  from (${toLabelledSessionsSql(ofTenant)}) where ${inRange}`

// The kind 'user' counts each user of legitimate sessions once.
const outcomesSql = `
  with labelled as (${labelledSql})
  select outcome, score, toFloat64(count()) from labelled group by outcome, score
  union all
  select 'user', highest, toFloat64(count())
  from (
    select arrayJoin(users) as user, max(score) as highest
    from labelled where outcome = 'legitimate' group by user
  )
  group by highest`

const asOfSql = 'select toUnixTimestamp64Milli(max(replicated_at)) from replication_rounds'

type AllRow = [score: number, sessions: number, firstMs: number]
type OutcomeRow = [kind: 'fraud' | 'legitimate' | 'user', score: number, count: number]

export function createScoreStore(clickhouse: Clickhouse): ScoreStore {
  const ask = async <Row>(query: string, range?: SessionRange): Promise<Row[]> => {
    const { tenantId, sinceMs, untilMs } = range ?? { tenantId: '', sinceMs: 0, untilMs: 0 }
    const result = await clickhouse.query({
      query,
      query_params: { tenant: tenantId, since: sinceMs, until: untilMs },
      clickhouse_settings: {
        max_execution_time: scoreQueryMaxSeconds,
        output_format_json_quote_64bit_integers: 0,
      },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  const readAll = async (range: SessionRange) => {
    const rows = await ask<AllRow>(allSql, range)
    const counts = noScores()
    for (const [at, sessions] of rows) counts.unlabelled[at]! += sessions
    const firstMs = rows.length === 0 ? null : Math.min(...rows.map((row) => row[2]))
    return { counts, firstMs }
  }
  return {
    countScores: async (range) => (await readAll(range)).counts,
    readScores: async (range) => {
      // Labels first: a session that is labelled meanwhile is counted once, without its label.
      const labelled = await ask<OutcomeRow>(outcomesSql, range)
      const { counts, firstMs } = await readAll(range)
      const honestUsers = new Array<number>(101).fill(0)
      for (const [kind, at, count] of labelled) {
        if (kind === 'user') {
          honestUsers[at]! += count
          continue
        }
        counts[kind][at]! += count
        counts.unlabelled[at] = Math.max(0, counts.unlabelled[at]! - count)
      }
      const [[asOfMs] = [0]] = await ask<[number]>(asOfSql)
      return {
        counts,
        honestUsers,
        days: firstMs === null ? 0 : Math.max(1, (range.untilMs - firstMs) / dayMs),
        asOfMs: asOfMs === 0 ? null : asOfMs,
      }
    },
  }
}
