/**
 * A policy over the stored history, inside ClickHouse: every event once, scored by the expression
 * that the policy compiles to, and summed up before it leaves the engine. Beside the new policy it
 * scores each event again by the policy that scored it and counts what differs from what is stored:
 * a report that does not reproduce the past says so. Slices are ranges of devices, because that is
 * how rows lie on disk; no session is in two.
 */
import type {
  BacktestSlice,
  EventGroup,
  ScoredBy,
  SessionGroup,
  SessionMove,
  SliceFindings,
} from '#shared/core/backtest.ts'
import type { Policy } from '#shared/core/policy.ts'
import { compileToSql, type SqlColumn, toScoringQuery } from '#shared/core/scoring-sql.ts'
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
  { name: 'old_flags', sql: 'arraySort(flags)' },
  { name: 'scored_by', sql: 'policy_hash' },
  // A test device of a sandbox: 1, 2 and 3 for the action that its id forces.
  {
    name: 'forced',
    sql:
      `if(has(flags, 'SANDBOX_FORCED'), ` +
      `indexOf(['test-allow', 'test-review', 'test-block'], device_id), 0)`,
  },
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

function forced(what: 'score' | 'action', { thresholds }: Policy, computed: string): string {
  const { review, block } = thresholds
  const values = what === 'action' ? [0, 1, 2] : [0, review, Math.min(100, block)]
  return `if(forced > 0, [${values.join(', ')}][forced], ${computed})`
}

/** One pass over the events makes both groups: of events by what moved, and of sessions. */
function toSliceQuery(request: SliceRequest, withOdd: boolean): string {
  const columns = toEventsQuery(request, 'columns')
  const events = withOdd ? `${columns} union all ${toEventsQuery(request, 'body')}` : columns
  const grouped = `
    select toUInt8(grouping(device)) as of_events, device, session, old_action, to_action, on_platform,
      version, old_flags, to_flags,
      count() as events,
      countIf(differs) as differing, groupArrayIf(10)(event, differs) as differing_ids,
      max(old_score) as old_peak, max(to_score) as new_peak,
      groupBitOr(bitShiftLeft(toUInt8(1), old_action)) as old_actions,
      groupBitOr(bitShiftLeft(toUInt8(1), to_action)) as new_actions,
      any(on_platform) as session_platform, any(version) as session_version,
      groupUniqArrayArrayIf(old_flags, old_action > 0) as old_alert_flags,
      groupUniqArrayArrayIf(to_flags, to_action > 0) as new_alert_flags
    from (${events})
    group by grouping sets ((device, session),
      (old_action, to_action, on_platform, version, old_flags, to_flags))`
  const moved = 'of_events = 0 and old_actions != new_actions'
  return `
    select of_events as ofEvents, old_action as oldAction, to_action as newAction,
      if(of_events, on_platform, session_platform) as platform,
      if(of_events, version, session_version) as sdkVersion,
      if(of_events, old_flags, if(${moved}, arraySort(old_alert_flags), [])) as oldFlags,
      if(of_events, to_flags, if(${moved}, arraySort(new_alert_flags), [])) as newFlags,
      if(of_events, 0, old_actions) as oldActions, if(of_events, 0, new_actions) as newActions,
      toFloat64(if(of_events, sum(events), count())) as n,
      toFloat64(if(of_events, sum(differing), 0)) as differing,
      arraySlice(arrayFlatten(groupArray(10)(differing_ids)), 1, 10) as differingIds,
      groupArraySortedIf(20)(
        (-abs(toInt16(new_peak) - old_peak), device, session, old_peak, new_peak),
        of_events = 0 and old_peak != new_peak
      ) as moves
    from (${grouped})
    group by of_events, oldAction, newAction, platform, sdkVersion, oldFlags, newFlags,
      oldActions, newActions`
}

type GroupRow = {
  ofEvents: number
  oldAction: number
  newAction: number
  platform: string
  sdkVersion: string
  oldFlags: string[]
  newFlags: string[]
  oldActions: number
  newActions: number
  n: number
  differing: number
  differingIds: string[]
  moves: [number, string, string, number, number][]
}

function toFindings(rows: readonly GroupRow[]): SliceFindings {
  const events: EventGroup[] = rows
    .filter((row) => row.ofEvents === 1)
    .map(({ oldAction, newAction, platform, sdkVersion, oldFlags, newFlags, n }) => {
      return { oldAction, newAction, platform, sdkVersion, oldFlags, newFlags, events: n }
    })
  const sessions: SessionGroup[] = rows
    .filter((row) => row.ofEvents === 0)
    .map(({ oldActions, newActions, platform, sdkVersion, oldFlags, newFlags, n }) => {
      return { oldActions, newActions, platform, sdkVersion, oldFlags, newFlags, sessions: n }
    })
  const moves: SessionMove[] = rows.flatMap((row) =>
    row.moves.map(([, deviceId, sessionId, oldScore, newScore]) => {
      return { deviceId, sessionId, oldScore, newScore }
    }),
  )
  return {
    events,
    sessions,
    moves,
    differing: rows.reduce((sum, row) => sum + row.differing, 0),
    differingIds: rows.flatMap((row) => (row.ofEvents === 1 ? row.differingIds : [])).slice(0, 10),
  }
}
