/**
 * Compares what a shadow policy would have decided with what was decided: read from the rows that
 * scorers wrote, summed up by session inside the engine. Sessions count, because an alert is one
 * for a device, a session and an action.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import {
  inOutcomePeriod,
  judgedSessionsSql,
  noMoves,
  noOutcomes,
  type OutcomeCounts,
  type OutcomeMoves,
  type OutcomeSums,
  toOutcomeCounts,
  toOutcomeMovesSql,
  toOutcomeSumsSql,
  toPeriodParams,
} from '#shared/core/outcomes/outcome-counts.ts'
import type { ComparedSessions } from '#shared/core/policies/shadow-comparison.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { readAsOf } from '#shared/io/outcomes/outcome-store.ts'

type ComparisonQuestion = {
  tenantId: string
  policyHash: string
  /** Events received before it are left out; null for all. */
  sinceMs: number | null
}

/** Alerts by disposition: of how many the session has one under the shadow too, and of how many not. */
type DispositionMoves = { name: string; kept: number; lost: number }

/**
 * What both policies make of the sessions whose outcome is known, by the events that were compared;
 * sessions that began before the range are left out.
 */
export type ShadowOutcomes = OutcomeMoves & {
  /** When labels and dispositions were copied; null when nothing was. */
  as_of: string | null
  active: OutcomeCounts
  shadow: OutcomeCounts
}

export type ShadowComparison = {
  /** Of the events that were compared, in ms since 1970; null when there were none. */
  firstMs: number | null
  lastMs: number | null
  /** The versions under which the document decided. */
  versions: number[]
  sessions: ComparedSessions[]
  /** Those whose highest risk scores differ most, first; at most 20. */
  moved: MovedSession[]
  dispositions: DispositionMoves[]
  outcomes: ShadowOutcomes
}

type MovedSession = {
  deviceId: string
  sessionId: string
  activeScore: number
  shadowScore: number
}

export type ShadowComparisonStore = {
  compareShadow: (question: ComparisonQuestion) => Promise<ShadowComparison>
}

const queryMaxSeconds = 25
const settings = {
  max_execution_time: queryMaxSeconds,
  do_not_merge_across_partitions_select_final: 1,
} as const

const rows = `shadow_decisions final
  where tenant_id = {tenant:String} and shadow_policy_hash = {policy:String}
    and received_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`

const pairs = [0, 1, 2].flatMap((from) => [0, 1, 2].map((to) => [from, to] as const))
const bit = (action: string) => `groupBitOr(bitShiftLeft(toUInt8(1), toUInt8(${action})))`

const bySession = `
  select
    device_id, session_id,
    [${pairs
      .map(
        ([from, to]) =>
          `countIf(toUInt8(active_action) = ${from} and toUInt8(shadow_action) = ${to})`,
      )
      .join(', ')}] as moved,
    ${bit('active_action')} as old_actions,
    ${bit('shadow_action')} as new_actions,
    max(active_risk_score) as old_peak,
    max(shadow_risk_score) as new_peak,
    argMin(platform, stream_offset) as on_platform,
    argMin(sdk_version, stream_offset) as version,
    groupUniqArrayArrayIf(active_flags, toUInt8(active_action) > 0) as old_codes,
    groupUniqArrayArrayIf(shadow_flags, toUInt8(shadow_action) > 0) as new_codes
  from ${rows}
  group by device_id, session_id`

const movedMax = 20

const groupsSql = `
  select
    old_actions as activeActions, new_actions as shadowActions, on_platform as platform,
    version as sdkVersion,
    if(old_actions = new_actions, [], arraySort(old_codes)) as activeFlags,
    if(old_actions = new_actions, [], arraySort(new_codes)) as shadowFlags,
    toFloat64(count()) as sessions,
    arrayMap(one -> toFloat64(one), sumForEach(moved)) as counts,
    groupArraySortedIf(${movedMax})(
      (-abs(toInt16(new_peak) - old_peak), device_id, session_id, old_peak, new_peak),
      old_peak != new_peak
    ) as moves
  from (${bySession})
  group by activeActions, shadowActions, platform, sdkVersion, activeFlags, shadowFlags`

const spanSql = `
  select toFloat64(count()), toFloat64(toUnixTimestamp64Milli(min(received_at))),
    toFloat64(toUnixTimestamp64Milli(max(received_at))), arraySort(groupUniqArray(shadow_version))
  from ${rows}`

const dispositionsSql = `
  select disposition, toFloat64(countIf(kept)), toFloat64(countIf(not kept))
  from (
    select device_id, session_id, action, arrayExists(one -> one != 'ALLOW', new_ones) as kept
    from (
      select device_id, session_id,
        arrayFilter(one -> one != 'ALLOW', groupUniqArray(toString(active_action))) as old_ones,
        groupUniqArray(toString(shadow_action)) as new_ones
      from ${rows}
      group by device_id, session_id
    )
    array join old_ones as action
  ) as decided
  join (
    select device_id, session_id, toString(action) as action, toString(disposition) as disposition
    from alerts_replica final where tenant_id = {tenant:String}
  ) as raised using (device_id, session_id, action)
  group by disposition order by disposition`

const outcomesSql = `
  select ${toOutcomeSumsSql('active_alert')} as active,
    ${toOutcomeSumsSql('shadow_alert')} as shadow,
    ${toOutcomeMovesSql('active_alert', 'shadow_alert')} as moves
  from (select * from (${judgedSessionsSql}) where ${inOutcomePeriod}) as known
  inner join (
    select device_id, session_id, max(toUInt8(active_action)) > 0 as active_alert,
      max(toUInt8(shadow_action)) > 0 as shadow_alert
    from ${rows}
    group by device_id, session_id
  ) as decided using (device_id, session_id)`

type OutcomeRow = { active: OutcomeSums; shadow: OutcomeSums; moves: OutcomeMoves }
const noRow: OutcomeRow = { active: noOutcomes, shadow: noOutcomes, moves: noMoves }

type GroupRow = Omit<ComparedSessions, 'events'> & {
  counts: number[]
  moves: [distance: number, device: string, session: string, active: number, shadow: number][]
}

export function createShadowComparisonStore(clickhouse: Clickhouse): ShadowComparisonStore {
  const read = async <Row>(
    query: string,
    { tenantId, policyHash, sinceMs }: ComparisonQuestion,
    format: 'JSONEachRow' | 'JSONCompactEachRow',
  ): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: { tenant: tenantId, policy: policyHash, ...toPeriodParams({ sinceMs }) },
      clickhouse_settings: settings,
      format,
    })
    return result.json<Row>()
  }
  return {
    compareShadow: async (question) => {
      type Span = [events: number, first: number, last: number, versions: number[]]
      const [span] = await read<Span>(spanSql, question, 'JSONCompactEachRow')
      const [events, firstMs, lastMs, versions] = span!
      const groups = await read<GroupRow>(groupsSql, question, 'JSONEachRow')
      const judged = await read<[string, number, number]>(
        dispositionsSql,
        question,
        'JSONCompactEachRow',
      )
      const [known = noRow] =
        events === 0 ? [] : await read<OutcomeRow>(outcomesSql, question, 'JSONEachRow')
      return {
        firstMs: events === 0 ? null : firstMs,
        lastMs: events === 0 ? null : lastMs,
        versions,
        sessions: groups.map(toSessions),
        moved: toMoved(groups),
        dispositions: judged.map(([name, kept, lost]) => ({ name, kept, lost })),
        outcomes: {
          as_of: await readAsOf(clickhouse),
          active: toOutcomeCounts(known.active),
          shadow: toOutcomeCounts(known.shadow),
          ...known.moves,
        },
      }
    },
  }
}

function toSessions({ counts, moves: _, ...group }: GroupRow): ComparedSessions {
  const of = (from: number) => [0, 1, 2].map((to) => counts[from * 3 + to]!)
  return { ...group, events: [0, 1, 2].map(of) }
}

function toMoved(groups: readonly GroupRow[]): MovedSession[] {
  return groups
    .flatMap(({ moves }) => moves)
    .sort((a, b) => a[0] - b[0] || compareBytes(a[1], b[1]) || compareBytes(a[2], b[2]))
    .slice(0, movedMax)
    .map(([, deviceId, sessionId, activeScore, shadowScore]) => {
      return { deviceId, sessionId, activeScore, shadowScore }
    })
}
