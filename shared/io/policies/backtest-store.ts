/**
 * Backtests a policy on the stored events, inside ClickHouse: it scores every event by the SQL
 * expression of the policy and aggregates the results. It also scores each event again by its own
 * policy and counts differences from the stored score. Slices are ranges of devices, the order of
 * rows on disk; no session is in two slices. Memory and threads of a query are bounded.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import { compareBytes } from '#shared/core/base/byte-order.ts'
import type {
  BacktestSlice,
  CorrelatedAlerts,
  ScoredBy,
  SessionGroup,
  SliceFindings,
} from '#shared/core/policies/backtest.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { readFlagWords } from '#shared/core/scoring/sql/flag-words.ts'
import { bodySettings } from '#shared/core/scoring/sql/scoring-sql-points.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type BacktestOutcomes, readBacktestOutcomes } from './backtest-outcome-store.ts'
import { scorePatterns } from './backtest-pattern-store.ts'
import {
  type BacktestRange,
  inRange,
  isTestDevice,
  type OneByOne,
  type PreparedBacktest,
  toCountQuery,
  toSliceQuery,
} from './backtest-slice-store.ts'

export type { PreparedBacktest }

type BacktestStore = {
  /** Which policies scored the events, most events first. */
  listScorers: (range: BacktestRange) => Promise<{ policyHash: string; events: number }[]>
  /** Alerts that the event's own score alone would not have raised. */
  listCorrelated: (range: BacktestRange) => Promise<CorrelatedAlerts[]>
  /** Ranges of devices with about equally many events, and test devices if there are any. */
  planSlices: (range: BacktestRange, count: number) => Promise<BacktestSlice[]>
  /** Scores the patterns, and counts the events that have none. */
  prepare: (
    request: BacktestRange & { policy: Policy; scoredBy: readonly ScoredBy[] },
  ) => Promise<PreparedBacktest>
  scoreSlice: (backtest: PreparedBacktest, slice: BacktestSlice) => Promise<SliceFindings>
  /** @param backtest null when the range has no event */
  readOutcomes: (
    range: BacktestRange,
    backtest: PreparedBacktest | null,
  ) => Promise<BacktestOutcomes>
}

/** One query is one slice: a second or two of patterns, ten times that of expressions. */
export const backtestSettings: ClickHouseSettings = {
  max_execution_time: 300,
  max_memory_usage: String(2 * 1024 ** 3),
  max_threads: 2,
  cancel_http_readonly_queries_on_client_close: 1,
  // Compiling expressions costs more than it saves in a query that runs a few times.
  compile_expressions: 0,
  // These passes find nothing in a tree of megabytes and take a third of the planning.
  optimize_and_compare_chain: 0,
  optimize_rewrite_has_to_in: 0,
  optimize_group_by_function_keys: 0,
  optimize_arithmetic_operations_in_aggregate_functions: 0,
  // A redelivered event is the same row of the same month, so months need not be read together.
  do_not_merge_across_partitions_select_final: 1,
  max_query_size: '20000000',
  max_ast_elements: '2000000',
  max_expanded_ast_elements: '4000000',
  ...bodySettings,
}

/** @param signal ends the running query and prevents further ones */
export function createBacktestStore(clickhouse: Clickhouse, signal?: AbortSignal): BacktestStore {
  const run = async (query: string, params: Record<string, unknown>, format: Format) =>
    clickhouse.query({
      query,
      query_params: params,
      format,
      clickhouse_settings: backtestSettings,
      ...(signal === undefined ? {} : { abort_signal: signal }),
    })
  const select = async <Row>(query: string, params: Record<string, unknown>): Promise<Row[]> =>
    (await run(query, params, 'JSONEachRow')).json<Row>()
  return {
    listScorers: (range) =>
      select(
        `select policy_hash as policyHash, toFloat64(count()) as events from telemetry
         where ${inRange(range)} group by policy_hash order by events desc, policy_hash`,
        toParams(range),
      ),
    listCorrelated: (range) =>
      select(
        `select toString(action) as action, toString(disposition) as disposition,
           toFloat64(count()) as alerts
         from alerts_replica final
         where tenant_id = {tenant:String} and risk_score > rasp_score
           and not has(reason_codes, 'DENY_LISTED')
           and created_at >= fromUnixTimestamp64Milli({since:Int64})
         group by action, disposition order by action, disposition`,
        { tenant: range.tenantId, since: range.sinceMs ?? 0 },
      ),
    planSlices: async (range, count) => {
      const [row] = await select<{ sample: string[]; tests: number }>(
        `select groupArraySample(8192, 1)(device_id) as sample,
           toFloat64(countIf(${isTestDevice})) as tests
         from telemetry where ${inRange(range)}`,
        toParams(range),
      )
      const tests: BacktestSlice[] = row!.tests > 0 ? ['test devices'] : []
      return [...tests, ...toSlices(row!.sample, count)]
    },
    prepare: async (request) => {
      const params = toParams(request)
      const policies = [request.policy, ...request.scoredBy.map((one) => one.policy)]
      const compact = async <Row>(query: string): Promise<Row[]> =>
        (await run(query, params, 'JSONCompactEachRow')).json<Row>() as Promise<Row[]>
      const scored = await scorePatterns(compact, { policies, where: inRange(request) })
      const prepared = { ...request, scored, all: nothing }
      const [all] = await select<OneByOne>(toCountQuery(prepared, null), params)
      return { ...prepared, all: all! }
    },
    scoreSlice: async (backtest, slice) => {
      const params = { ...toParams(backtest), ...toSliceParams(slice) }
      // Planning an expression takes longer than a slice without one.
      const isAny = backtest.all.byExpression > 0
      const [some] = isAny
        ? await select<OneByOne>(toCountQuery(backtest, slice), params)
        : [nothing]
      return toFindings(await select<GroupRow>(toSliceQuery(backtest, slice, some!), params))
    },
    readOutcomes: ({ tenantId, sinceMs }, backtest) =>
      readBacktestOutcomes(clickhouse, select, { tenantId, sinceMs, backtest }),
  }
}

type Format = 'JSONEachRow' | 'JSONCompactEachRow'
const nothing: OneByOne = { byExpression: 0, byBody: 0 }

const toParams = ({ tenantId, sinceMs }: BacktestRange) => ({
  tenant: tenantId,
  ...(sinceMs === null ? {} : { since: sinceMs }),
})

export function toSliceParams(slice: BacktestSlice): Record<string, string> {
  if (slice === 'test devices') return {}
  const { from, to } = slice
  return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) }
}

function toSlices(sample: readonly string[], count: number): BacktestSlice[] {
  const sorted = [...sample].sort(compareBytes)
  const bounds = Array.from(
    { length: count - 1 },
    (_, n) => sorted[Math.floor(((n + 1) * sorted.length) / count)],
  )
  const inner = [...new Set(bounds.filter((one) => one !== undefined))]
  return [null, ...inner].map((from, n) => ({ from, to: inner[n] ?? null }))
}

type GroupRow = Omit<SessionGroup, 'oldFlags' | 'newFlags'> & {
  /** By word. */
  oldFlags: number[]
  newFlags: number[]
  events: number[]
  recomputed: number
  different: number
  differingIds: string[]
  moves: [number, string, string, number, number][]
}

function toFindings(rows: readonly GroupRow[]): SliceFindings {
  const events = [0, 1, 2].map((from) =>
    [0, 1, 2].map((to) => rows.reduce((sum, row) => sum + row.events[from * 3 + to]!, 0)),
  )
  return {
    events,
    sessions: rows
      .filter((row) => row.sessions > 0)
      .map((row) => ({
        oldActions: row.oldActions,
        newActions: row.newActions,
        platform: row.platform,
        sdkVersion: row.sdkVersion,
        oldFlags: readFlagWords(row.oldFlags),
        newFlags: readFlagWords(row.newFlags),
        reviewRaised: row.reviewRaised,
        reviewDisposition: row.reviewDisposition,
        blockRaised: row.blockRaised,
        blockDisposition: row.blockDisposition,
        sessions: row.sessions,
      })),
    moves: rows.flatMap((row) =>
      row.moves.map(([, deviceId, sessionId, oldScore, newScore]) => {
        return { deviceId, sessionId, oldScore, newScore }
      }),
    ),
    recomputed: rows.reduce((sum, row) => sum + row.recomputed, 0),
    differing: rows.reduce((sum, row) => sum + row.different, 0),
    differingIds: rows.flatMap((row) => row.differingIds).slice(0, 10),
  }
}
