/**
 * One slice of a backtest as one query: it gets the stored verdict, the same one computed again,
 * and the new verdict of every event in a range of devices, and aggregates them in the engine.
 * Verdicts of events with a scored pattern are looked up; the others are computed by the policies'
 * expressions. Events that both verdicts allow without a flag are only counted; the others are
 * grouped by session.
 */
import { listFlagCodes } from '#shared/core/lists/lists.ts'
import type { BacktestSlice, ScoredBy } from '#shared/core/policies/backtest.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { flagWords, toFlagWord } from '#shared/core/scoring/sql/flag-words.ts'
import {
  compileToSql,
  type SqlColumn,
  toScoringQuery,
} from '#shared/core/scoring/sql/scoring-sql.ts'
import { needsBody, type Source } from '#shared/core/scoring/sql/scoring-sql-points.ts'
import { quoteText, quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import {
  isNewerThanPattern,
  noVerdict,
  type PatternVerdicts,
  toLookUps,
} from './backtest-pattern-store.ts'

/** The parameter `since` is absent in a range without a beginning. */
export type BacktestRange = {
  tenantId: string
  sinceMs: number | null
  /** SQL of a further condition for events. */
  only?: string
}

export type PreparedBacktest = BacktestRange & {
  policy: Policy
  /** Policies that scored the events, by their hash. */
  scoredBy: readonly ScoredBy[]
  scored: PatternVerdicts
  /** Of all events. */
  all: OneByOne
}

/** Events to score one by one, and those of them that need their body. */
export type OneByOne = { byExpression: number; byBody: number }

/** The devices whose ids force an action in a sandbox; they have their own slice. */
const testDevices = actions.map((action) => `test-${action.toLowerCase()}`)
export const isTestDevice = `device_id in (${testDevices.map(quoteText).join(', ')})`

/**
 * The condition for the events of a backtest. It leaves out those that a list decided: their action
 * is the same under every policy.
 */
export function inRange({ sinceMs, only }: BacktestRange): string {
  const since =
    sinceMs === null ? '' : ' and received_at >= fromUnixTimestamp64Milli({since:Int64})'
  const listed = quoteTexts(listFlagCodes)
  const condition = only === undefined ? '' : ` and ${only}`
  return `tenant_id = {tenant:String}${since} and not hasAny(flags, ${listed})${condition}`
}

/** Over a table with device ids. */
export function inDevices(slice: BacktestSlice): string {
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

/**
 * Counts the events whose score no pattern determines, and those that columns do not determine.
 * @param slice null for all events
 */
export function toCountQuery(backtest: PreparedBacktest, slice: BacktestSlice | null): string {
  const policies = policiesOf(backtest)
  const { constants, verdictOf } = toLookUps(backtest.scored)
  return `with ${constants.join(',\n')}
    select toFloat64(countIf(not looked_up)) as byExpression,
      toFloat64(countIf(not looked_up and odd)) as byBody
    from (
      select ${verdictOf(0)} != ${noVerdict} and not ${isNewerThanPattern(policies)} as looked_up,
        (${needsBody(policies)}) as odd
      from telemetry
      where ${inRange(backtest)}${slice === null ? '' : ` and ${inDevices(slice)}`}
    )`
}

/** The columns that every branch returns for an event. */
const eventColumns = [
  ...['device', 'session', 'event', 'on_platform', 'version', 'old_score', 'old_action'],
  ...['to_score', 'to_action', 'again'],
  ...flagWords.flatMap((word) => [`old_flags${word}`, `to_flags${word}`]),
].join(', ')

const kept: SqlColumn[] = [
  { name: 'device', sql: 'device_id' },
  { name: 'session', sql: 'session_id' },
  { name: 'event', sql: 'event_id' },
  { name: 'on_platform', sql: 'platform' },
  { name: 'version', sql: 'sdk_version' },
  { name: 'old_score', sql: 'rasp_score' },
  { name: 'old_action', sql: 'toUInt8(rasp_action)' },
  ...flagWords.map((word) => ({
    name: `old_flags${word}`,
    sql: `if(empty(flags), toUInt64(0), ${toFlagWord('flags', word)})`,
  })),
  { name: 'scored_by', sql: 'policy_hash' },
]

/**
 * The columns of one policy's verdict, and whether it equals the stored one. The id of a test
 * device forces its verdict.
 */
type Verdicts = { score: (policy: number) => string; action: (policy: number) => string }

function toOutcome(
  { policy, scoredBy }: PreparedBacktest,
  slice: BacktestSlice,
  { score, action, flags }: Verdicts & { flags: (policy: number, word: number) => string },
): string[] {
  const isTest = slice === 'test devices'
  const force = (what: 'score' | 'action', policy: Policy, computed: string) =>
    isTest ? forced(what, policy, computed) : computed
  const flagsOf = (n: number, word: number) =>
    isTest ? `if(forced > 0, old_flags${word}, ${flags(n, word)})` : flags(n, word)
  const again = scoredBy.flatMap((one, n) => [
    `scored_by = ${quoteText(one.policyHash)}`,
    `1 + (${[
      `${force('score', one.policy, score(n + 1))} != old_score`,
      `${force('action', one.policy, action(n + 1))} != old_action`,
      ...flagWords.map((word) => `${flagsOf(n + 1, word)} != old_flags${word}`),
    ].join(' or ')})`,
  ])
  return [
    `${force('score', policy, score(0))} as to_score`,
    `${force('action', policy, action(0))} as to_action`,
    ...flagWords.map(
      (word) => `if(to_action > 0, ${flagsOf(0, word)}, toUInt64(0)) as to_flags${word}`,
    ),
    // 0: its policy is unknown, 1: equal, 2: different.
    `toUInt8(${again.length === 0 ? '0' : `multiIf(${again.join(', ')}, 0)`}) as again`,
  ]
}

const keptOf = (slice: BacktestSlice): SqlColumn[] =>
  slice === 'test devices' ? [...kept, { name: 'forced', sql: forcedBy() }] : kept

function isLookedUp(backtest: PreparedBacktest): string {
  const { verdictOf } = toLookUps(backtest.scored)
  return `(${verdictOf(0)} != ${noVerdict} and not ${isNewerThanPattern(policiesOf(backtest))})`
}

function toLookedUpQuery(backtest: PreparedBacktest, slice: BacktestSlice, all: boolean): string {
  const { verdictOf, flagsOf } = toLookUps(backtest.scored)
  const verdicts = policiesOf(backtest).map((_, n) => `${verdictOf(n)} as verdict_${n}`)
  const outcome = toOutcome(backtest, slice, {
    score: (n) => `toUInt8(bitAnd(verdict_${n}, 255))`,
    action: (n) => `toUInt8(bitShiftRight(verdict_${n}, 8))`,
    flags: flagsOf,
  })
  const layer = keptOf(slice).map(({ name, sql }) => `${sql} as ${name}`)
  return `select ${[...layer, ...verdicts, ...outcome].join(',\n')}
    from telemetry final
    where ${inRange(backtest)} and ${inDevices(slice)}${all ? '' : ` and ${isLookedUp(backtest)}`}`
}

function toExpressionQuery(
  backtest: PreparedBacktest,
  slice: BacktestSlice,
  source: Source,
): string {
  const policies = policiesOf(backtest)
  const odd = needsBody(policies)
  // The new policy is often one of those that scored.
  const hashes = policies.map(toPolicyHash)
  const firsts = hashes.map((hash) => hashes.indexOf(hash))
  const prefixOf = (n: number) => `p${firsts[n]}_`
  const compiled = policies.flatMap((one, n) =>
    firsts[n] === n ? [compileToSql(one, { prefix: prefixOf(n), source, withFlags: true })] : [],
  )
  const keep = keptOf(slice)
  const query = toScoringQuery(compiled, {
    from: `telemetry final where ${inRange(backtest)} and ${inDevices(slice)}
      and not ${isLookedUp(backtest)} and ${source === 'body' ? '' : 'not '}(${odd})`,
    keep,
  })
  const outcome = toOutcome(backtest, slice, {
    score: (n) => `${prefixOf(n)}score`,
    action: (n) => `${prefixOf(n)}action`,
    flags: (n, word) => `${prefixOf(n)}flags${word}`,
  })
  return `select ${[...keep.map(({ name }) => name), ...outcome].join(',\n')} from (${query})`
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

/** Parts of a slice by how their events are scored; each event is in one part. */
export function listParts(
  backtest: PreparedBacktest,
  slice: BacktestSlice,
  { byExpression, byBody }: OneByOne,
): string[] {
  return [
    toLookedUpQuery(backtest, slice, byExpression === 0),
    ...(byExpression > byBody ? [toExpressionQuery(backtest, slice, 'columns')] : []),
    ...(byBody > 0 ? [toExpressionQuery(backtest, slice, 'body')] : []),
  ]
}

/** 0 none, 1 raised by the event's own score, 2 raised by risk features. */
const raisedBy = (action: string) =>
  `maxIf(if(risk_score > rasp_score, 2, 1), action = '${action}') as ${action.toLowerCase()}_raised,
   anyIf(disposition, action = '${action}') as ${action.toLowerCase()}_disposition`

const moveNames = [0, 1, 2].flatMap((from) => [0, 1, 2].map((to) => `m${from}${to}`))

/** The flags of the events of a session that raise an alert. */
const toAlertFlags = (word: number): string =>
  `groupBitOrIf(old_flags${word}, old_action > 0) as old_alert_flags${word},
   groupBitOrIf(to_flags${word}, to_action > 0) as new_alert_flags${word}`

/** Groups events by session, the order on disk, and counts sessions by outcome. */
export function toSliceQuery(
  backtest: PreparedBacktest,
  slice: BacktestSlice,
  oneByOne: OneByOne,
): string {
  const { constants } = toLookUps(backtest.scored)
  const parts = listParts(backtest, slice, oneByOne)
  const events = parts.map((part) => `select ${eventColumns} from (${part})`)
  const counted = moveNames.map(
    (name) => `countIf(old_action = ${name[1]} and to_action = ${name[2]}) as ${name}`,
  )
  const bySession = `
    select if(held, device, '') as of_device, if(held, session, '') as of_session,
      ${counted.join(', ')},
      countIf(again > 0) as compared, countIf(again = 2) as differing,
      groupArrayIf(10)(event, again = 2) as differing_ids,
      max(old_score) as old_peak, max(to_score) as new_peak,
      groupBitOr(bitShiftLeft(toUInt8(1), old_action)) as old_actions,
      groupBitOr(bitShiftLeft(toUInt8(1), to_action)) as new_actions,
      anyIf(on_platform, held) as in_platform, anyIf(version, held) as in_version,
      ${flagWords.map(toAlertFlags).join(', ')}
    from (
      select *, old_score > 0 or to_score > 0 as held from (${events.join('\nunion all\n')})
    )
    group by of_device, of_session`
  const raised = `
    select device_id, session_id, ${raisedBy('REVIEW')}, ${raisedBy('BLOCK')}
    from alerts_replica final
    where tenant_id = {tenant:String} and ${inDevices(slice)}
    group by device_id, session_id`
  const changed = (flags: string) => {
    const words = flagWords.map((word) => `toFloat64(${flags}${word})`)
    const none = flagWords.map(() => 'toFloat64(0)')
    return `if(old_actions = new_actions, [${none.join(', ')}], [${words.join(', ')}])`
  }
  return `with ${constants.join(',\n')}
    select old_actions as oldActions, new_actions as newActions,
      in_platform as platform, in_version as sdkVersion,
      ${changed('old_alert_flags')} as oldFlags, ${changed('new_alert_flags')} as newFlags,
      review_raised as reviewRaised, review_disposition as reviewDisposition,
      block_raised as blockRaised, block_disposition as blockDisposition,
      toFloat64(countIf(of_device != '')) as sessions,
      [${moveNames.map((name) => `toFloat64(sum(${name}))`).join(', ')}] as events,
      toFloat64(sum(compared)) as recomputed, toFloat64(sum(differing)) as different,
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
