/**
 * What a backtested policy makes of the sessions whose outcome is known. Before it, a session has
 * an alert as rule performance counts it. Under it, a session has one when its signals alone raise
 * one, or when they did not raise the one that it has: a backtest does not compute risk features
 * and lists again, so what they raised stays. Sessions that began before the range are left out.
 */
import {
  inOutcomePeriod,
  judgedSessionsSql,
  noMoves,
  type OutcomeCounts,
  type OutcomeMoves,
  type OutcomeSums,
  toOutcomeCounts,
  toOutcomeMovesSql,
  toOutcomeSumsSql,
  toPeriodParams,
} from '#shared/core/outcomes/outcome-counts.ts'
import type { BacktestSlice } from '#shared/core/policies/backtest.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { readOutcomeCounts } from '#shared/io/outcomes/outcome-store.ts'
import { toLookUps } from './backtest-pattern-store.ts'
import {
  listParts,
  type OneByOne,
  type PreparedBacktest,
  toCountQuery,
} from './backtest-slice-store.ts'

/** `as_of`: when labels and dispositions were copied; null when nothing was. */
export type BacktestOutcomes = OutcomeMoves & {
  as_of: string | null
  before: OutcomeCounts
  after: OutcomeCounts
}

type Select = <Row>(query: string, params: Record<string, unknown>) => Promise<Row[]>

const knownSql = `select * from (${judgedSessionsSql}) where ${inOutcomePeriod}`
const isKnown = `(device_id, session_id) in (select device_id, session_id from (${knownSql}))`
/** Test devices are in no range. */
const slices: readonly BacktestSlice[] = [{ from: null, to: null }, 'test devices']

/**
 * Reads the outcomes of a backtest. Its labelled sessions are scored in one query: they are few.
 * @param select runs a query with the settings of backtests
 * @param backtest null when the range has no event, so that nothing changes
 */
export async function readBacktestOutcomes(
  clickhouse: Clickhouse,
  select: Select,
  { tenantId, sinceMs, backtest }: OutcomeRequest,
): Promise<BacktestOutcomes> {
  const { as_of, ...before } = await readOutcomeCounts(clickhouse, { tenantId, sinceMs })
  const unchanged = { as_of, before, after: before, ...noMoves }
  if (backtest === null || before.fraud + before.honest === 0) return unchanged
  const known = { ...backtest, only: isKnown }
  const params = { tenant: tenantId, ...toPeriodParams({ sinceMs }) }
  const parts: string[] = []
  for (const slice of slices) {
    // Planning an expression takes longer than scoring by it.
    const isAny = backtest.all.byExpression > 0
    const [oneByOne = nothing] = isAny
      ? await select<OneByOne>(toCountQuery(known, slice), params)
      : [nothing]
    parts.push(...listParts(known, slice, oneByOne))
  }
  const [row] = await select<Row>(toOutcomeQuery(known, parts), params)
  const { sums_before: old, sums_after: next, moves } = row!
  return { as_of, before: toOutcomeCounts(old), after: toOutcomeCounts(next), ...moves }
}

type OutcomeRequest = {
  tenantId: string
  sinceMs: number | null
  backtest: PreparedBacktest | null
}
type Row = { sums_before: OutcomeSums; sums_after: OutcomeSums; moves: OutcomeMoves }
const nothing: OneByOne = { byExpression: 0, byBody: 0 }

function toOutcomeQuery(backtest: PreparedBacktest, parts: readonly string[]): string {
  const { constants } = toLookUps(backtest.scored)
  const events = parts.map((part) => `select device, session, old_action, to_action from (${part})`)
  const after = '(has_alert_again or (has_alert and not had_own_alert))'
  return `with ${constants.join(',\n')}
    select ${toOutcomeSumsSql('has_alert')} as sums_before,
      ${toOutcomeSumsSql(after)} as sums_after,
      ${toOutcomeMovesSql('has_alert', after)} as moves
    from (${knownSql}) as known
    left any join (
      select device as device_id, session as session_id, max(old_action) > 0 as had_own_alert,
        max(to_action) > 0 as has_alert_again
      from (${events.join('\nunion all\n')})
      group by device, session
    ) as scored using (device_id, session_id)`
}
