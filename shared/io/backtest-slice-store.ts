/**
 * One slice of a backtest as one query: every event of a range of devices with its old and its new
 * verdict and its old one computed again, summed up before anything leaves the engine. Events with a
 * scored pattern look it up. The others, and those of a sandbox's test devices, are scored by the
 * policies' expressions. Events that neither verdict holds anything against are counted and go no
 * further: only the rest is put together by session.
 */
import type { BacktestSlice, ScoredBy } from '#shared/core/backtest.ts'
import type { Policy } from '#shared/core/policy.ts'
import { actions } from '#shared/core/scoring.ts'
import {
  compileToSql,
  type SqlColumn,
  toFlagBits,
  toScoringQuery,
} from '#shared/core/scoring-sql.ts'
import { needsBody, type Source } from '#shared/core/scoring-sql-points.ts'
import { quoteText } from '#shared/core/scoring-sql-text.ts'
import {
  isNewerThanPattern,
  noVerdict,
  type PatternVerdicts,
  toLookUps,
} from './backtest-pattern-store.ts'

/** `since` of the parameters is left out of a range without a beginning. */
export type BacktestRange = { tenantId: string; sinceMs: number | null }

export type PreparedBacktest = BacktestRange & {
  policy: Policy
  /** Policies that scored the events, by their hash. */
  scoredBy: readonly ScoredBy[]
  scored: PatternVerdicts
  /** Events that have to be scored one by one, and those of them for which columns will not do. */
  byExpression: number
  byBody: number
}

/** The devices whose ids force an action in a sandbox; they are a slice of their own. */
const testDevices = actions.map((action) => `test-${action.toLowerCase()}`)
export const isTestDevice = `device_id in (${testDevices.map(quoteText).join(', ')})`

export function inRange({ sinceMs }: BacktestRange): string {
  const since =
    sinceMs === null ? '' : ' and received_at >= fromUnixTimestamp64Milli({since:Int64})'
  return `tenant_id = {tenant:String}${since}`
}

/** Over a table with device ids. */
function inDevices(slice: BacktestSlice): string {
  if (slice === 'test devices') return isTestDevice
  const { from, to } = slice
  return [
    `not ${isTestDevice}`,
    ...(from === null ? [] : ['device_id >= {from:String}']),
    ...(to === null ? [] : ['device_id < {to:String}']),
  ].join(' and ')
}

const policiesOf = ({ policy, scoredBy }: Pick<PreparedBacktest, 'policy' | 'scoredBy'>) => [
  policy,
  ...scoredBy.map((one) => one.policy),
]

/** How many events there are, and how many of them no pattern and no column tells all of. */
export function toCountQuery(backtest: PreparedBacktest): string {
  const policies = policiesOf(backtest)
  const { constants, verdictOf } = toLookUps(backtest.scored)
  return `with ${constants.join(',\n')}
    select toFloat64(count()) as events, toFloat64(countIf(not looked_up)) as byExpression,
      toFloat64(countIf(not looked_up and odd)) as byBody
    from (
      select ${verdictOf(0)} != ${noVerdict} and not ${isNewerThanPattern(policies)} as looked_up,
        (${needsBody(policies)}) as odd
      from telemetry where ${inRange(backtest)} and not ${isTestDevice}
    )`
}

/** What every branch gives of an event. */
const eventColumns = [
  ...['device', 'session', 'event', 'on_platform', 'version', 'old_score', 'old_action'],
  ...['old_flags', 'to_score', 'to_action', 'to_flags', 'differs'],
].join(', ')

const kept: SqlColumn[] = [
  { name: 'device', sql: 'device_id' },
  { name: 'session', sql: 'session_id' },
  { name: 'event', sql: 'event_id' },
  { name: 'on_platform', sql: 'platform' },
  { name: 'version', sql: 'sdk_version' },
  { name: 'old_score', sql: 'rasp_score' },
  { name: 'old_action', sql: 'toUInt8(rasp_action)' },
  { name: 'old_flags', sql: `if(empty(flags), toUInt64(0), ${toFlagBits('flags')})` },
  { name: 'scored_by', sql: 'policy_hash' },
]

function toLookedUpQuery(backtest: PreparedBacktest, slice: BacktestSlice): string {
  const { scoredBy } = backtest
  const { verdictOf, flagsOf } = toLookUps(backtest.scored)
  const verdicts = [0, ...scoredBy.map((_, n) => n + 1)].map(
    (n) => `${verdictOf(n)} as verdict_${n}`,
  )
  const others =
    backtest.byExpression === 0
      ? ''
      : ` and verdict_0 != ${noVerdict} and not ${isNewerThanPattern(policiesOf(backtest))}`
  const differs = scoredBy.flatMap(({ policyHash }, n) => [
    `scored_by = ${quoteText(policyHash)}`,
    `verdict_${n + 1} != old_score + 256 * old_action or ${flagsOf(n + 1)} != old_flags`,
  ])
  const layer = kept.map(({ name, sql }) => `${sql} as ${name}`)
  return `select ${layer.join(', ')}, ${verdicts.join(', ')},
      toUInt8(bitAnd(verdict_0, 255)) as to_score, toUInt8(bitShiftRight(verdict_0, 8)) as to_action,
      if(to_action > 0, ${flagsOf(0)}, toUInt64(0)) as to_flags,
      ${differs.length === 0 ? '0' : `multiIf(${differs.join(', ')}, 0)`} as differs
    from telemetry final
    where ${inRange(backtest)} and ${inDevices(slice)}${others}`
}

function toExpressionQuery(
  backtest: PreparedBacktest,
  slice: BacktestSlice,
  source: Source,
): string {
  const { policy, scoredBy, scored } = backtest
  const policies = policiesOf(backtest)
  const odd = needsBody(policies)
  const compiled = policies.map((one, n) =>
    compileToSql(one, { prefix: `p${n}_`, source, withFlags: true }),
  )
  const isLookedUp =
    slice === 'test devices'
      ? '0'
      : `(${toLookUps(scored).verdictOf(0)} != ${noVerdict} and not ${isNewerThanPattern(policies)})`
  const query = toScoringQuery(compiled, {
    from: `telemetry final where ${inRange(backtest)} and ${inDevices(slice)}
      and not ${isLookedUp} and ${source === 'body' ? '' : 'not '}(${odd})`,
    keep: [...kept, { name: 'forced', sql: forcedBy() }],
  })
  const again = scoredBy.flatMap((one, n) => [
    `scored_by = ${quoteText(one.policyHash)}`,
    [
      `${forced('score', one.policy, `p${n + 1}_score`)} != old_score`,
      `${forced('action', one.policy, `p${n + 1}_action`)} != old_action`,
      `if(forced > 0, old_flags, p${n + 1}_flags) != old_flags`,
    ].join(' or '),
  ])
  return `select device, session, event, on_platform, version, old_score, old_action, old_flags,
      ${forced('score', policy, 'p0_score')} as to_score,
      ${forced('action', policy, 'p0_action')} as to_action,
      if(forced > 0, old_flags, p0_flags) as to_flags,
      ${again.length === 0 ? '0' : `multiIf(${again.join(', ')}, 0)`} as differs
    from (${query})`
}

/** A test device of a sandbox: 1, 2 and 3 for the action that its id forces. */
function forcedBy(): string {
  const cases = testDevices.flatMap((device, n) => [
    `device_id = ${quoteText(device)}`,
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

/** Events of a slice by what they are to be scored with; each event is in one part. */
function listParts(backtest: PreparedBacktest, slice: BacktestSlice): string[] {
  if (slice === 'test devices') {
    return (['columns', 'body'] as const).map((source) =>
      toExpressionQuery(backtest, slice, source),
    )
  }
  const { byExpression, byBody } = backtest
  return [
    toLookedUpQuery(backtest, slice),
    ...(byExpression > byBody ? [toExpressionQuery(backtest, slice, 'columns')] : []),
    ...(byBody > 0 ? [toExpressionQuery(backtest, slice, 'body')] : []),
  ]
}

/** 0 none, 1 raised by the event's own score, 2 by what was known beyond it. */
const raisedBy = (action: string) =>
  `maxIf(if(risk_score > rasp_score, 2, 1), action = '${action}') as ${action.toLowerCase()}_raised,
   anyIf(disposition, action = '${action}') as ${action.toLowerCase()}_disposition`

const moveNames = [0, 1, 2].flatMap((from) => [0, 1, 2].map((to) => `m${from}${to}`))

/** Sums events up by session, which is how they lie on disk, and sessions by what became of them. */
export function toSliceQuery(backtest: PreparedBacktest, slice: BacktestSlice): string {
  const { constants } = toLookUps(backtest.scored)
  const events = listParts(backtest, slice).map((part) => `select ${eventColumns} from (${part})`)
  const counted = moveNames.map(
    (name) => `countIf(old_action = ${name[1]} and to_action = ${name[2]}) as ${name}`,
  )
  const bySession = `
    select if(held, device, '') as of_device, if(held, session, '') as of_session,
      ${counted.join(', ')},
      countIf(differs) as differing, groupArrayIf(10)(event, differs) as differing_ids,
      max(old_score) as old_peak, max(to_score) as new_peak,
      groupBitOr(bitShiftLeft(toUInt8(1), old_action)) as old_actions,
      groupBitOr(bitShiftLeft(toUInt8(1), to_action)) as new_actions,
      anyIf(on_platform, held) as in_platform, anyIf(version, held) as in_version,
      groupBitOrIf(old_flags, old_action > 0) as old_alert_flags,
      groupBitOrIf(to_flags, to_action > 0) as new_alert_flags
    from (
      select *, old_score > 0 or to_score > 0 as held from (${events.join('\nunion all\n')})
    )
    group by of_device, of_session`
  const raised = `
    select device_id, session_id, ${raisedBy('REVIEW')}, ${raisedBy('BLOCK')}
    from alerts_mirror final
    where tenant_id = {tenant:String} and ${inDevices(slice)}
    group by device_id, session_id`
  const changed = (sql: string) => `toFloat64(if(old_actions = new_actions, 0, ${sql}))`
  return `with ${constants.join(',\n')}
    select old_actions as oldActions, new_actions as newActions,
      in_platform as platform, in_version as sdkVersion,
      ${changed('old_alert_flags')} as oldFlags, ${changed('new_alert_flags')} as newFlags,
      review_raised as reviewRaised, review_disposition as reviewDisposition,
      block_raised as blockRaised, block_disposition as blockDisposition,
      toFloat64(countIf(of_device != '')) as sessions,
      [${moveNames.map((name) => `toFloat64(sum(${name}))`).join(', ')}] as events,
      toFloat64(sum(differing)) as different,
      arraySlice(arrayFlatten(groupArrayIf(10)(differing_ids, differing > 0)), 1, 10)
        as differingIds,
      groupArraySortedIf(20)(
        (-abs(toInt16(new_peak) - old_peak), of_device, of_session, old_peak, new_peak),
        old_peak != new_peak
      ) as moves
    from (${bySession}) as moved
    left any join (${raised}) as raised
      on moved.of_device = raised.device_id and moved.of_session = raised.session_id
    group by oldActions, newActions, platform, sdkVersion, oldFlags, newFlags,
      reviewRaised, reviewDisposition, blockRaised, blockDisposition`
}
