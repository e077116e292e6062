/**
 * Scores patterns instead of events: a policy's expression runs over the few thousand rows of
 * `signal_patterns`, not over millions of events. Suppressions also depend on an event's context
 * (SDK version, platform, time), so every pattern is scored once in each context that occurs.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import { flagWords } from '#shared/core/scoring/sql/flag-words.ts'
import {
  compileToSql,
  type SqlColumn,
  toScoringQuery,
} from '#shared/core/scoring/sql/scoring-sql.ts'
import {
  filledByPattern,
  toMissingCondition,
} from '#shared/core/scoring/sql/scoring-sql-missing.ts'
import { listSuppressionConditions, pointsOf } from '#shared/core/scoring/sql/scoring-sql-points.ts'
import { quoteNumber, quoteText, quoteTexts } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import {
  findPatternLimits,
  installerPath,
  listWeighed,
  textsByVersion,
} from '#shared/core/scoring/sql/signal-patterns.ts'
import { toColumnPath } from '#shared/core/signals/column-path.ts'
import { unknownSignalsMax } from '#shared/core/telemetry/unknown-signals.ts'

/** Runs a query with the parameters of the tenant and its range. */
type Select = <Row>(query: string, params?: Record<string, unknown>) => Promise<Row[]>

/**
 * The patterns that determine a score, and by context, policy and pattern their scores: score +
 * 256 * action, and by word the bits of the flags.
 */
export type PatternVerdicts = {
  patterns: string[]
  /** SQL over a row of `telemetry`: a number of which suppressions' conditions hold. */
  contextSql: string
  contexts: { context: number; policies: PolicyVerdicts[] }[]
}

/** Of each pattern; `flags` has a list for each of `flagWords`. */
type PolicyVerdicts = { verdicts: number[]; flags: number[][] }

/** A verdict that no pattern has. */
export const noVerdict = 65_535

/** Limits; beyond them events are scored one by one. */
const patternsMax = 20_000
const contextsMax = 16
const conditionsMax = 32

type Context = { context: number; sdkVersion: string; platform: string; receivedAtMs: number }

/**
 * Scores the patterns of a tenant.
 * @param where the condition on `telemetry` for the contexts
 */
export async function scorePatterns(
  select: Select,
  { policies, where }: { policies: readonly Policy[]; where: string },
): Promise<PatternVerdicts> {
  const found = await findContexts(select, policies, where)
  if (found === null) return { patterns: [], contextSql: '0', contexts: [] }
  const { contextSql, contexts } = found
  const scored: PatternVerdicts = { patterns: [], contextSql, contexts: [] }
  for (const context of contexts) {
    const rows = await select<PatternRow>(toPatternQuery(policies, context))
    scored.patterns = rows.map(([pattern]) => pattern)
    scored.contexts.push({
      context: context.context,
      policies: policies.map((_, n) => ({
        verdicts: rows.map((row) => row[1 + perPolicy * n] as number),
        flags: flagWords.map((word) => rows.map((row) => row[2 + perPolicy * n + word] as number)),
      })),
    })
  }
  return scored
}

/**
 * The contexts that suppressions of these policies tell apart, each with one of its events.
 * @returns null when there are too many conditions
 */
export async function findContexts(
  select: Select,
  policies: readonly Policy[],
  where: string,
): Promise<{ contextSql: string; contexts: Context[] } | null> {
  const conditions = listSuppressionConditions(policies)
  if (conditions.length > conditionsMax) return null
  if (conditions.length === 0) return { contextSql: '0', contexts: [anyContext] }
  const contextSql = conditions.map((one, bit) => `toUInt32(${one}) * ${2 ** bit}`).join(' + ')
  return { contextSql, contexts: await listContexts(select, contextSql, where) }
}

const anyContext: Context = { context: 0, sdkVersion: '', platform: '', receivedAtMs: 0 }

async function listContexts(select: Select, sql: string, where: string): Promise<Context[]> {
  const rows = await select<[number, [string, string, number]]>(`
    select context, any(of) from (
      select ${sql} as context, (sdk_version, platform, toUnixTimestamp64Milli(received_at)) as of
      from telemetry where ${where}
    ) group by context order by count() desc, context limit ${contextsMax}`)
  return rows.map(([context, [sdkVersion, platform, receivedAtMs]]) => ({
    context,
    sdkVersion,
    platform,
    receivedAtMs,
  }))
}

type PatternRow = [pattern: string, ...numbers: number[]]
/** Numbers of a row for each policy. */
const perPolicy = 1 + flagWords.length

function toPatternQuery(policies: readonly Policy[], context: Context): string {
  const compiled = policies.map((policy, n) =>
    compileToSql(policy, { prefix: `p${n}_`, source: 'columns', withFlags: true }),
  )
  const keep: SqlColumn[] = [
    { name: 'of_pattern', sql: 'pattern' },
    { name: 'sdk_version', sql: quoteText(context.sdkVersion) },
    { name: 'platform', sql: quoteText(context.platform) },
    { name: 'filled_categories', sql: filledByPattern },
    { name: 'received_at', sql: `fromUnixTimestamp64Milli(toInt64(${context.receivedAtMs}))` },
  ]
  const from = `signal_patterns final where tenant_id = {tenant:String}
    and (${[...textsByVersion].map((one) => toSupported(policies, one)).join(' or ')})`
  const verdicts = policies.flatMap((_, n) => [
    `p${n}_score + 256 * p${n}_action`,
    ...flagWords.map((word) => `toFloat64(p${n}_flags${word})`),
  ])
  const query = toScoringQuery(compiled, { from, keep })
  return `select of_pattern, ${verdicts.join(', ')} from (${query})
    order by of_pattern limit ${patternsMax}`
}

/** The patterns of a version that determine a score. */
function toSupported(
  policies: readonly Policy[],
  [version, texts]: readonly [number, ReadonlySet<string>],
): string {
  const { hidden, ranges, silenced, requirements } = findPatternLimits(policies, texts)
  const always = { suppressions: [] }
  const silent = silenced.flatMap(
    (one) => pointsOf({ ...one, policy: always, source: 'columns' }) ?? [],
  )
  const limits = [
    `hasAny(hidden, cast(${quoteTexts(hidden)} as Array(String)))`,
    ...ranges.map(
      ({ category, signal, from }) =>
        `ifNull(${toColumnPath(category, signal)}.:Int64 = ${quoteNumber(from)}, 0)`,
    ),
    ...(silent.length === 0
      ? []
      : [`(has(hidden, ${quoteText(installerPath)}) and (${silent.join(' + ')}) > 0)`]),
    ...requirements.map((one) => toMissingCondition(one, 'columns')!),
  ]
  return `version = ${version} and not (${limits.join(' or ')})`
}

/** SQL: the event's pattern may lack a signal that the catalog did not have at the time. */
export function isNewerThanPattern(policies: readonly Policy[]): string {
  const weighed = quoteTexts(listWeighed(policies))
  return `(notEmpty(unknown_signals) and (length(unknown_signals) >= ${unknownSignalsMax} or hasAny(
    unknown_signals, cast(${weighed} as Array(String)))))`
}

/**
 * SQL that looks up an event's verdicts and flags: expressions over a row of `telemetry`, and the
 * constants for its WITH. A verdict is `noVerdict` when the event has no scored pattern.
 */
export function toLookUps(scored: PatternVerdicts): {
  constants: string[]
  verdictOf: (policy: number) => string
  flagsOf: (policy: number, word: number) => string
} {
  const constants = [`cast(${quoteTexts(scored.patterns)} as Array(String)) as patterns`]
  for (const { context, policies } of scored.contexts) {
    policies.forEach(({ verdicts, flags }, n) => {
      constants.push(`cast([${verdicts.join(',')}] as Array(UInt16)) as verdicts_${n}_${context}`)
      flags.forEach((bits, word) => {
        const name = `flags${word}_${n}_${context}`
        constants.push(`cast([${bits.join(',')}] as Array(UInt64)) as ${name}`)
      })
    })
  }
  const lookUp = (name: string, otherwise: string) => {
    const of = (context: number) => `transform(pattern, patterns, ${name}_${context}, ${otherwise})`
    const [first] = scored.contexts
    if (first === undefined || scored.patterns.length === 0) return otherwise
    if (scored.contextSql === '0') return of(first.context)
    const cases = scored.contexts.flatMap(({ context }) => [
      `(${scored.contextSql}) = ${context}`,
      of(context),
    ])
    return `multiIf(${[...cases, otherwise].join(', ')})`
  }
  return {
    constants,
    verdictOf: (policy) => lookUp(`verdicts_${policy}`, `toUInt16(${noVerdict})`),
    flagsOf: (policy, word) => lookUp(`flags${word}_${policy}`, 'toUInt64(0)'),
  }
}
