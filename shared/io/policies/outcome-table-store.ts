/**
 * Reads the table from which a policy is suggested: sessions by the kinds of their events, and what
 * labels say of them. It reads slices of devices, as a backtest does, so that the memory of the
 * engine is bounded; what comes back are counts of equal sessions.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import { outcomeRowsMax, trainingShare } from '#shared/core/base/limits/policies.ts'
import { toLabelledSessionsSql } from '#shared/core/outcomes/coverage-sql.ts'
import { addLosses, toLossTextsSql } from '#shared/core/outcomes/outcome-counts.ts'
import { toDeclaredSql, withDeclared } from '#shared/core/outcomes/suggest/declared-points.ts'
import type {
  OutcomeEvent,
  OutcomeRow,
  OutcomeTable,
} from '#shared/core/outcomes/suggest/outcome-table.ts'
import { type BacktestSlice, eventsPerSlice } from '#shared/core/policies/backtest.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { velocityMetrics } from '#shared/core/policies/velocity-metrics.ts'
import { quoteText, quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import {
  findPatternLimits,
  isPatternEnough,
  type SignalPattern,
  textsByVersion,
} from '#shared/core/scoring/sql/signal-patterns.ts'
import type { ScoringContext } from '#shared/core/scoring/suppressions.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import { countKey, toWindowText } from '#shared/core/velocity/correlation.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { findContexts, isNewerThanPattern } from './backtest-pattern-store.ts'
import { inDevices, inRange } from './backtest-slice-store.ts'
import { backtestSettings, createBacktestStore, toSliceParams } from './backtest-store.ts'

export type OutcomeRange = { tenantId: string; sinceMs: number }

/** A step of reading: slices of the stored events. */
export type OutcomeProgress = { slices_done: number; slices: number }

export type ReadOutcomes = {
  table: OutcomeTable
  /** From this instant on sessions are newer. */
  splitMs: number
  sessions: number
  /** Sessions without a row: an event has no pattern that tells its score, or rows ran out. */
  leftOut: number
}

type Select = <Row>(query: string, params?: Record<string, unknown>) => Promise<Row[]>

const separator = '\t'
type KindParts = [pattern: string, context: string, findings: string, declared: string]

/**
 * Reads the table.
 * @param policy whose rules of velocity, texts and suppressions the table tells apart
 * @param signal ends the running query and prevents further ones
 * @returns null when the range has no event
 */
export async function* readOutcomeTable(
  clickhouse: Clickhouse,
  { range, policy }: { range: OutcomeRange; policy: Policy },
  signal?: AbortSignal,
): AsyncGenerator<OutcomeProgress, ReadOutcomes | null> {
  const fixed = { tenant: range.tenantId, since: range.sinceMs }
  const select: Select = async (query, params = {}) => {
    const result = await clickhouse.query({
      query,
      query_params: { ...fixed, ...params },
      format: 'JSONCompactEachRow',
      clickhouse_settings: backtestSettings,
      ...(signal === undefined ? {} : { abort_signal: signal }),
    })
    return result.json()
  }
  const span = await findSpan(select, range)
  if (span === null) return null
  const found = await findContexts(select, [policy], inRange(range))
  const contexts = found?.contexts ?? []
  const query: SessionQuery = { range, policy, contextSql: found?.contextSql ?? '0' }
  const params = { split: span.splitMs }
  const count = Math.max(1, Math.ceil(span.events / eventsPerSlice))
  const slices = await createBacktestStore(clickhouse, signal).planSlices(range, count)
  const sum = createSum(await readPatterns(select, policy), { policy, contexts })
  sum.addLabelled(await select<LabelledRow>(toLabelledQuery(query), params))
  yield { slices_done: 0, slices: slices.length }
  for (const [at, slice] of slices.entries()) {
    const own = slice === 'test devices' ? {} : toSliceParams(slice)
    sum.addAll(await select<CountedRow>(toCountedQuery(query, slice), { ...params, ...own }))
    yield { slices_done: at + 1, slices: slices.length }
  }
  const days = {
    older: Math.max(0, span.splitMs - span.firstMs) / dayMs,
    newer: Math.max(0, span.lastMs - span.splitMs) / dayMs,
  }
  return { ...sum.result(days), splitMs: span.splitMs }
}

type Span = { events: number; firstMs: number; lastMs: number; splitMs: number }

const ofTenant = 'tenant_id = {tenant:String}'
/** Of sessions that began before the range only some events are read, so they are left out. */
const labelledSql = `
  select *
  from (${toLabelledSessionsSql(ofTenant)})
  where started_at >= fromUnixTimestamp64Milli({since:Int64})`

/** When the events are of, and the instant that most labelled sessions began before. */
async function findSpan(select: Select, range: OutcomeRange): Promise<Span | null> {
  const [all] = await select<[number, number, number]>(`
    select toFloat64(count()), toFloat64(toUnixTimestamp64Milli(min(received_at))),
      toFloat64(toUnixTimestamp64Milli(max(received_at)))
    from telemetry where ${inRange(range)}`)
  const [events, firstMs, lastMs] = all!
  if (events === 0) return null
  const [split] = await select<[number, number]>(`
    select toFloat64(count()),
      toFloat64(quantileExact(${trainingShare})(toUnixTimestamp64Milli(started_at)))
    from (${labelledSql})`)
  const [labelled, splitMs] = split!
  return { events, firstMs, lastMs, splitMs: labelled === 0 ? lastMs : splitMs }
}

type SessionQuery = { range: OutcomeRange; policy: Policy; contextSql: string }

/** What is known of a labelled session, beside its kinds. */
const known = ['outcome', 'label_ids', 'losses', 'users'] as const

/** Devices of a slice, or the labelled sessions with what is known of them. */
type Some = { slice: BacktestSlice } | 'labelled'

/** One row for each session: the kinds of its events, and whether it is of the older period. */
function toSessionsSql({ range, policy, contextSql }: SessionQuery, some: Some): string {
  const isLabelled = some === 'labelled'
  const where = isLabelled ? 'true' : inDevices(some.slice)
  const more = (sql: (name: string) => string) => (isLabelled ? known.map(sql).join('') : '')
  // To find labelled sessions takes seconds: they are joined and not also looked for.
  const labelled = `
      inner join (
        select device_id, session_id, ${known.join(', ')}
        from (${labelledSql})
      ) as labelled using (device_id, session_id)`
  // What the catalog got after the pattern was made says more than the pattern.
  const undeclared = { ...policy, signals: undefined }
  return `
    select device_id, session_id, arraySort(groupUniqArray(kind)) as kinds,
      min(received_at) < fromUnixTimestamp64Milli({split:Int64}) as is_older
      ${more((name) => `, any(${name}) as ${name}`)}
    from (
      select device_id, session_id, received_at ${more((name) => `, ${name}`)},
        concat(if(${isNewerThanPattern([undeclared])}, '', pattern), '\\t',
          toString(${contextSql}), '\\t', findings, '\\t', ${toDeclaredSql(policy)}) as kind
      from telemetry final
      ${isLabelled ? labelled : ''}
      left any join (${toFindingsSql(policy, where)}) as decided
        using (device_id, session_id, event_id)
      where ${inRange(range)} and not has(flags, ${quoteText(sandboxForced)}) and ${where}
    )
    group by device_id, session_id`
}

const toCountedQuery = (query: SessionQuery, slice: BacktestSlice): string => `
  select kinds, is_older, toFloat64(count())
  from (${toSessionsSql(query, { slice })})
  group by kinds, is_older`

// A number that JavaScript has exactly. Two of a million users are one in one of 18,000 tenants.
const userSql = 'toFloat64(bitAnd(sipHash64(user), 9007199254740991))'

/** A session is known by judging alone when every label that covers it is an alert. */
const toLabelledQuery = (query: SessionQuery): string => `
  select kinds, is_older, outcome = 'fraud', length(label_ids) <= alerts, toFloat64(count()),
    ${toLossTextsSql('sumMap(losses)')},
    groupUniqArrayArrayIf(arrayMap(user -> ${userSql}, users), outcome = 'legitimate')
  from (${toSessionsSql(query, 'labelled')}) as session
  left any join (
    select device_id, session_id, count() as alerts
    from alerts_replica final
    where ${ofTenant} and disposition in ('CONFIRMED', 'FALSE_POSITIVE')
    group by device_id, session_id
  ) as judged using (device_id, session_id)
  group by 1, 2, 3, 4`

/** `metric:window` as reasons have it. */
const windowKey = ({ metric, windowSeconds }: Policy['velocity'][number]): string =>
  `${metric}:${toWindowText(windowSeconds)}`

/**
 * Of each event with a decision what was found beside its signals: counts of the policy's rules by
 * the highest limit that they are above, and other findings with their points.
 * @param where of the events' devices: reasons are long texts to read
 */
function toFindingsSql(policy: Policy, where: string): string {
  const bounds = policy.velocity.map((rule) => {
    const limits = [rule.threshold, ...(rule.steps ?? []).map(({ above }) => above)]
    return `${quoteText(windowKey(rule))}, cast([${limits.join(', ')}] as Array(Int64))`
  })
  const limitsOf = `cast(map(${bounds.join(', ')}) as Map(String, Array(Int64)))`
  const evidence = (name: string) => `JSONExtractString(reason, 'evidence', '${name}')`
  const key = `concat(${evidence('metric')}, ':', ${evidence('window')})`
  const count = `JSONExtractInt(reason, 'evidence', 'count')`
  const reached = `arrayMax(arrayConcat([toInt64(-1)], arrayFilter(
    limit -> limit < ${count}, limits[${key}])))`
  const weight = `JSONExtractInt(reason, 'weight')`
  const none = quoteTexts(['', 'required_signals'])
  return `
    with ${limitsOf} as limits
    select device_id, session_id, event_id, arrayStringConcat(arraySort(arrayFilter(
      found -> found != '',
      arrayMap(reason -> multiIf(
        has(${none}, ${evidence('metric')}), '',
        has(${quoteTexts(velocityMetrics)}, ${evidence('metric')}),
          if(${reached} < 0, '', concat('v ', ${key}, ' ', toString(${reached}))),
        ${weight} > 0,
          concat('o ', JSONExtractString(reason, 'code'), ' ', toString(${weight})),
        ''
      ), JSONExtractArrayRaw(reasons))
    )), ',') as findings
    from decisions final
    where ${ofTenant} and received_at >= fromUnixTimestamp64Milli({since:Int64}) and ${where}`
}

type KnownPattern = { signals: Signals; server: SignalPattern['server'] }

/** The patterns that tell the score of their events under the policy. */
async function readPatterns(select: Select, policy: Policy): Promise<Map<string, KnownPattern>> {
  const rows = await select<[string, number, string, string, string[]]>(`
    select pattern, version, toJSONString(signals), toJSONString(server_signals), hidden
    from signal_patterns final
    where ${ofTenant}
    settings output_format_json_quote_64bit_integers = 0`)
  const known = new Map<string, KnownPattern>()
  for (const [pattern, version, signalsText, serverText, hidden] of rows) {
    const texts = textsByVersion.get(version)
    if (texts === undefined) continue
    const sent = JSON.parse(signalsText) as Partial<Signals>
    const signals = Object.fromEntries(
      categories.map((category) => [category, sent[category] ?? {}]),
    ) as Signals
    const server = JSON.parse(serverText) as SignalPattern['server']
    const limits = findPatternLimits([policy], texts)
    if (!isPatternEnough({ signals, server, hidden }, limits)) continue
    known.set(pattern, { signals, server })
  }
  return known
}

type CountedRow = [kinds: string[], isOlder: boolean | number, sessions: number]
type LabelledRow = [
  kinds: string[],
  isOlder: boolean | number,
  isFraud: boolean | number,
  isJudged: boolean | number,
  sessions: number,
  losses: Record<string, string>,
  honestUsers: number[],
]

type KnownContext = ScoringContext & { context: number }

/** Adds up the rows of both queries. */
function createSum(
  patterns: ReadonlyMap<string, KnownPattern>,
  { policy, contexts }: { policy: Policy; contexts: readonly KnownContext[] },
) {
  const events: OutcomeEvent[] = []
  const places = new Map<string, number>()
  const rows = new Map<string, OutcomeRow>()
  let sessions = 0
  let leftOut = 0
  const contextOf = new Map(contexts.map((one) => [String(one.context), one]))
  const toPlace = (kind: string): number | null => {
    const present = places.get(kind)
    if (present !== undefined) return present
    const [pattern, context, findings, declared] = kind.split(separator) as KindParts
    const known = patterns.get(pattern)
    const here = contextOf.get(context)
    if (known === undefined || here === undefined) return null
    places.set(kind, events.length)
    const signals = withDeclared(known.signals, policy, declared)
    events.push({ ...known, signals, context: here, ...parseFindings(findings, policy) })
    return events.length - 1
  }
  const find = (kinds: readonly string[], isOlder: unknown): OutcomeRow | null => {
    const period = isOlder ? 'older' : 'newer'
    const key = `${period} ${kinds.join(' ')}`
    const present = rows.get(key)
    if (present !== undefined) return present
    const own = kinds.map(toPlace)
    if (own.includes(null) || rows.size >= outcomeRowsMax) return null
    const counts = { fraud: 0, legitimate: 0, unlabelled: 0, judged: 0 }
    const known = { losses: {}, honestUsers: [] }
    const row: OutcomeRow = { events: own as number[], period, ...counts, ...known }
    rows.set(key, row)
    return row
  }
  return {
    addLabelled: (labelled: readonly LabelledRow[]) => {
      for (const [kinds, isOlder, isFraud, isJudged, count, losses, users] of labelled) {
        const row = find(kinds, isOlder)
        if (row === null) continue
        row.losses = addLosses(row.losses, losses)
        row.honestUsers = [...new Set([...row.honestUsers, ...users])]
        if (isFraud) row.fraud += count
        else row.legitimate += count
        if (isFraud && isJudged) row.judged += count
        // They are among all sessions too.
        row.unlabelled -= count
      }
    },
    addAll: (counted: readonly CountedRow[]) => {
      for (const [kinds, isOlder, count] of counted) {
        sessions += count
        const row = find(kinds, isOlder)
        if (row === null) leftOut += count
        else row.unlabelled += count
      }
    },
    result: (days: OutcomeTable['days']) => {
      // A session whose events came between the two queries can be in one of them alone.
      const all = [...rows.values()].map((row) => {
        return { ...row, unlabelled: Math.max(0, row.unlabelled) }
      })
      return { table: { events, rows: all, days }, sessions, leftOut }
    },
  }
}

function parseFindings(text: string, policy: Policy): Pick<OutcomeEvent, 'counts' | 'others'> {
  const counts = new Map<string, number>()
  const others: { code: Flag; weight: number }[] = []
  const rules = new Map(policy.velocity.map((rule) => [windowKey(rule), countKey(rule)]))
  for (const finding of text === '' ? [] : text.split(',')) {
    const [kind, name, number] = finding.split(' ') as [string, string, string]
    if (kind === 'v') counts.set(rules.get(name)!, Number(number) + 1)
    else others.push({ code: name as Flag, weight: Number(number) })
  }
  return { counts, others }
}
