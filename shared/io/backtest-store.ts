/**
 * A policy over the stored history, inside ClickHouse: every event once, scored by the expression
 * that the policy compiles to, and summed up before it leaves the engine. Beside the new policy it
 * scores each event again by the policy that scored it and counts what differs from what is stored:
 * a report that does not reproduce the past says so. Slices are ranges of devices, because that is
 * how rows lie on disk; no session is in two.
 */
import type { BacktestSlice, ScoredBy, SessionGroup, SliceFindings } from '#shared/core/backtest.ts'
import type { Policy } from '#shared/core/policy.ts'
import { actions } from '#shared/core/scoring.ts'
import {
  compileToSql,
  readFlagBits,
  type SqlColumn,
  toFlagBits,
  toScoringQuery,
} from '#shared/core/scoring-sql.ts'
import { needsBody, type Source } from '#shared/core/scoring-sql-points.ts'
import { quoteText } from '#shared/core/scoring-sql-text.ts'
import type { Clickhouse } from './clickhouse.ts'

export type BacktestRange = { tenantId: string; sinceMs: number | null }

export type SliceRequest = BacktestRange & {
  slice: BacktestSlice
  policy: Policy
  /** Policies that scored the events, by their hash. */
  scoredBy: readonly ScoredBy[]
}

export type BacktestStore = {
  /** Which policies scored the events, most events first. */
  listScorers: (range: BacktestRange) => Promise<{ policyHash: string; events: number }[]>
  /** Ranges of devices with about as many events each. */
  planSlices: (range: BacktestRange, count: number) => Promise<BacktestSlice[]>
  scoreSlice: (request: SliceRequest) => Promise<SliceFindings>
}

/** Times of the query log; a slice of half a million events takes about a second. */
const settings = {
  // A query that runs a few times does not earn back its machine code.
  compile_expressions: 0,
  max_query_size: '20000000',
  max_ast_elements: '2000000',
  max_expanded_ast_elements: '4000000',
} as const

export function createBacktestStore(clickhouse: Clickhouse): BacktestStore {
  const select = async <Row>(query: string, params: Record<string, unknown>): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: params,
      format: 'JSONEachRow',
      clickhouse_settings: settings,
    })
    return result.json<Row>()
  }
  return {
    listScorers: (range) =>
      select(
        `select policy_hash as policyHash, toFloat64(count()) as events from telemetry
         where ${inRange(range)} group by policy_hash order by events desc, policy_hash`,
        toParams(range),
      ),
    planSlices: async (range, count) => {
      const [row] = await select<{ sample: string[] }>(
        `select groupArraySample(8192, 1)(device_id) as sample from telemetry
         where ${inRange(range)}`,
        toParams(range),
      )
      return toSlices(row?.sample ?? [], count)
    },
    scoreSlice: async (request) => {
      const params = { ...toParams(request), ...toSliceParams(request.slice) }
      const odd = oddRows(request)
      const [some] = await select<{ n: number }>(
        `select toFloat64(count()) as n from telemetry where ${inSlice(request)} and (${odd})`,
        params,
      )
      const whole = await select<GroupRow>(toSliceQuery(request, some!.n > 0), params)
      return toFindings(whole)
    },
  }
}

function inRange({ sinceMs }: BacktestRange): string {
  const since =
    sinceMs === null ? '' : ' and received_at >= fromUnixTimestamp64Milli({since:Int64})'
  return `tenant_id = {tenant:String}${since}`
}

const toParams = ({ tenantId, sinceMs }: BacktestRange) => ({
  tenant: tenantId,
  ...(sinceMs === null ? {} : { since: sinceMs }),
})

function toSlices(sample: readonly string[], count: number): BacktestSlice[] {
  const sorted = [...sample].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const bounds = Array.from(
    { length: count - 1 },
    (_, n) => sorted[Math.floor(((n + 1) * sorted.length) / count)],
  )
  const inner = [...new Set(bounds.filter((one) => one !== undefined))]
  return [null, ...inner].map((from, n) => ({ from, to: inner[n] ?? null }))
}

function inSlice(request: SliceRequest): string {
  const { from, to } = request.slice
  return [
    inRange(request),
    ...(from === null ? [] : ['device_id >= {from:String}']),
    ...(to === null ? [] : ['device_id < {to:String}']),
  ].join(' and ')
}

const toSliceParams = ({ from, to }: BacktestSlice) => ({
  ...(from === null ? {} : { from }),
  ...(to === null ? {} : { to }),
})

function oddRows({ policy, scoredBy }: SliceRequest): string {
  return needsBody([policy, ...scoredBy.map((one) => one.policy)])
}

const kept: SqlColumn[] = [
  { name: 'device', sql: 'device_id' },
  { name: 'session', sql: 'session_id' },
  { name: 'event', sql: 'event_id' },
  { name: 'on_platform', sql: 'platform' },
  { name: 'version', sql: 'sdk_version' },
  { name: 'old_score', sql: 'rasp_score' },
  { name: 'old_action', sql: 'toUInt8(rasp_action)' },
  { name: 'old_flags', sql: toFlagBits('flags') },
  { name: 'scored_by', sql: 'policy_hash' },
  // A test device of a sandbox: 1, 2 and 3 for the action that its id forces.
  { name: 'forced', sql: forcedBy() },
]

/** Every event of a slice with its old and its new verdict, and its old one computed again. */
function toEventsQuery(request: SliceRequest, source: Source): string {
  const { policy, scoredBy } = request
  const odd = oddRows(request)
  const compiled = [
    compileToSql(policy, { prefix: 'new_', source, withFlags: true }),
    ...scoredBy.map((one, n) =>
      compileToSql(one.policy, { prefix: `by${n}_`, source, withFlags: false }),
    ),
  ]
  const scored = toScoringQuery(compiled, {
    from:
      `telemetry final where ${inSlice(request)} and ` +
      (source === 'body' ? `(${odd})` : `not (${odd})`),
    keep: kept,
  })
  const again = (what: 'score' | 'action', old: string) => {
    const cases = scoredBy.flatMap((one, n) => [
      `scored_by = ${quoteText(one.policyHash)}`,
      forced(what, one.policy, `by${n}_${what}`),
    ])
    return `multiIf(${[...cases, old].join(', ')})`
  }
  return `select device, session, event, on_platform, version, old_score, old_action, old_flags,
    ${forced('score', policy, 'new_score')} as to_score,
    ${forced('action', policy, 'new_action')} as to_action,
    if(forced > 0, old_flags, new_flags) as to_flags,
    ${scoredBy.length === 0 ? '0' : `${again('score', 'old_score')} != old_score or ` + `${again('action', 'old_action')} != old_action`} as differs
    from (${scored})`
}

function forcedBy(): string {
  const cases = actions.flatMap((action, n) => [
    `device_id = 'test-${action.toLowerCase()}'`,
    `has(flags, 'SANDBOX_FORCED') * ${n + 1}`,
  ])
  return `toUInt8(multiIf(${cases.join(', ')}, 0))`
}

function forced(what: 'score' | 'action', { thresholds }: Policy, computed: string): string {
  const { review, block } = thresholds
  const values = what === 'action' ? [0, 1, 2] : [0, review, Math.min(100, block)]
  const cases = values.map((value, n) => `forced = ${n + 1}, toUInt8(${value})`)
  return `multiIf(forced = 0, ${computed}, ${cases.join(', ')}, ${computed})`
}

const moveNames = [0, 1, 2].flatMap((from) => [0, 1, 2].map((to) => `m${from}${to}`))

/** Sums events up by session, which is how they lie on disk, and sessions by what became of them. */
function toSliceQuery(request: SliceRequest, withOdd: boolean): string {
  const columns = toEventsQuery(request, 'columns')
  const events = withOdd ? `${columns} union all ${toEventsQuery(request, 'body')}` : columns
  const counted = moveNames.map(
    (name) => `countIf(old_action = ${name[1]} and to_action = ${name[2]}) as ${name}`,
  )
  const bySession = `
    select device, session, ${counted.join(', ')},
      countIf(differs) as differing, groupArrayIf(10)(event, differs) as differing_ids,
      max(old_score) as old_peak, max(to_score) as new_peak,
      groupBitOr(bitShiftLeft(toUInt8(1), old_action)) as old_actions,
      groupBitOr(bitShiftLeft(toUInt8(1), to_action)) as new_actions,
      any(on_platform) as in_platform, any(version) as in_version,
      groupBitOrIf(old_flags, old_action > 0) as old_alert_flags,
      groupBitOrIf(to_flags, to_action > 0) as new_alert_flags
    from (${events}) group by device, session`
  const toNumber = (sql: string, name: string) => `toFloat64(${sql}) as ${name}`
  return `
    select old_actions as oldActions, new_actions as newActions,
      in_platform as platform, in_version as sdkVersion,
      toFloat64(if(old_actions = new_actions, 0, old_alert_flags)) as oldFlags,
      toFloat64(if(old_actions = new_actions, 0, new_alert_flags)) as newFlags,
      ${toNumber('count()', 'sessions')},
      [${moveNames.map((name) => `toFloat64(sum(${name}))`).join(', ')}] as events,
      ${toNumber('sum(differing)', 'different')},
      arraySlice(arrayFlatten(groupArrayIf(10)(differing_ids, differing > 0)), 1, 10)
        as differingIds,
      groupArraySortedIf(20)(
        (-abs(toInt16(new_peak) - old_peak), device, session, old_peak, new_peak),
        old_peak != new_peak
      ) as moves
    from (${bySession})
    group by oldActions, newActions, platform, sdkVersion, oldFlags, newFlags`
}

type GroupRow = Omit<SessionGroup, 'oldFlags' | 'newFlags'> & {
  oldFlags: number
  newFlags: number
  events: number[]
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
    sessions: rows.map((row) => ({
      oldActions: row.oldActions,
      newActions: row.newActions,
      platform: row.platform,
      sdkVersion: row.sdkVersion,
      oldFlags: readFlagBits(row.oldFlags),
      newFlags: readFlagBits(row.newFlags),
      sessions: row.sessions,
    })),
    moves: rows.flatMap((row) =>
      row.moves.map(([, deviceId, sessionId, oldScore, newScore]) => {
        return { deviceId, sessionId, oldScore, newScore }
      }),
    ),
    differing: rows.reduce((sum, row) => sum + row.different, 0),
    differingIds: rows.flatMap((row) => row.differingIds).slice(0, 10),
  }
}
