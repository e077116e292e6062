/**
 * Compiles a policy to ClickHouse expressions, for backtests over the whole history inside the
 * engine. It scores rows of `telemetry` exactly as scoring.ts scores their events; a property test
 * holds the two equal. All arithmetic is in integers, so there is no rounding.
 *
 * After halving, the score of scoring.ts is the maximum over all choices of halvings. How the
 * points are spread over categories only matters for reasons, so the expressions compute the
 * maximum.
 */

import { findCategoryPolicy, type Policy } from '#shared/core/policies/policy.ts'
import {
  type CategoryRules,
  type CompiledPolicy,
  compileRules,
  toSoftLimit,
} from '#shared/core/scoring/score-rules.ts'
import type { Flag } from '#shared/core/signals/flag-codes.ts'
import type { SignalCategory } from '#shared/core/signals/signal-definition.ts'
import { withSpellings } from '#shared/core/signals/vocabulary.ts'
import { flagWords, placeFlag } from './flag-words.ts'
import { toMissingCondition } from './scoring-sql-missing.ts'
import {
  type FlagPoints,
  flagPointsOf,
  pointsOf,
  type Source,
  toVerifiedCondition,
  type VerifiedColumns,
} from './scoring-sql-points.ts'

/** One item of a SELECT list. */
export type SqlColumn = { name: string; sql: string }

/**
 * Three layers, each the SELECT list over a subquery with the one before: `points` over rows of
 * `telemetry`, `tallies` over points, and `verdict` over tallies: score, action and, on request,
 * flags. Layers keep expressions small, because a name replaces a whole expression.
 */
type ScoringSql = {
  points: SqlColumn[]
  tallies: SqlColumn[]
  /** `score` 0..100, UInt8, and `action` 0, 1 or 2 for ALLOW, REVIEW, BLOCK, UInt8. */
  verdict: SqlColumn[]
}

type ScoringSqlOptions = {
  /** Prefix of every name, so that two policies fit into one query: letters, digits and `_`. */
  prefix: string
  /** Where signals are read; `columns` is exact for rows outside `needsBody`. */
  source: Source
  /** Whether `verdict` has `flags0`, `flags1`, ...: a UInt64 each, see `readFlagWords`. */
  withFlags: boolean
}

/** A signal that can score, with the name of its column of points. */
type Term = {
  name: string
  path: string
  /** By flag the column of the points of its values; one flag, with all points, for most. */
  flags: { flag: Flag; name: string }[]
  critical: boolean
  group: number
}

type CategoryTerms = { rules: CategoryRules; terms: Term[] }

/** Compiles a policy to SQL. */
export function compileToSql(policy: Policy, options: ScoringSqlOptions): ScoringSql {
  const { prefix, source, withFlags } = options
  const compiled = compileRules(policy)
  const points: SqlColumn[] = []
  const verified = addVerified(policy, prefix, points)
  const terms: CategoryTerms[] = compiled.categories.map((rules) => ({
    rules,
    terms: [...rules.rules].flatMap(([signal, rule]) => {
      const { category } = rules
      const { signals } = findCategoryPolicy(policy, category)!
      const weight = withSpellings(category, signal, signals[signal]!)
      const leaf = { category, signal, weight, policy, source, verified }
      const sql = pointsOf(leaf)
      if (sql === null) return []
      const addColumn = (column: string): string => {
        points.push({ name: `${prefix}p${points.length}`, sql: column })
        return points.at(-1)!.name
      }
      const name = addColumn(sql)
      const { path, critical, group } = rule
      const byFlag = flagPointsOf(leaf)
      const flags =
        byFlag.length === 1
          ? [{ flag: byFlag[0]!.flag, name }]
          : withFlags
            ? byFlag.map(({ flag, sql: own }: FlagPoints) => ({ flag, name: addColumn(own) }))
            : []
      return { name, path, flags, critical, group }
    }),
  }))
  const missing = toMissingCondition(compiled.requirement, source)
  const missingName = `${prefix}missing`
  if (missing !== null) {
    const { weight } = compiled.requirement!
    points.push({ name: missingName, sql: `if(${missing}, toUInt8(${weight}), toUInt8(0))` })
  }
  const tallies = createTallies(compiled, terms, prefix)
  const ofSignals = toScore(compiled, terms, tallies.nameOf)
  const score = missing === null ? ofSignals : `least(100, ${ofSignals} + ${missingName})`
  const { review, block } = compiled.thresholds
  const name = `${prefix}score`
  return {
    points,
    tallies: [
      ...tallies.columns,
      ...toFloors(compiled, terms, prefix),
      ...(missing === null ? [] : [{ name: missingName, sql: missingName }]),
      ...(withFlags ? toFlags(terms, prefix, missing === null ? null : missingName) : []),
    ],
    verdict: [
      { name, sql: `toUInt8(${greatest([score, ...floorNames(compiled, terms, prefix)])})` },
      { name: `${prefix}action`, sql: `toUInt8((${name} >= ${review}) + (${name} >= ${block}))` },
      ...(withFlags ? flagWords.map((word) => `${prefix}flags${word}`) : []).map((name) => {
        return { name, sql: name }
      }),
    ],
  }
}

/** Adds the columns that several signals need, where the policy weighs what was verified. */
function addVerified(
  { serverCategories }: Policy,
  prefix: string,
  points: SqlColumn[],
): VerifiedColumns | undefined {
  if (serverCategories?.attestation === undefined) return undefined
  const verified = { evidence: `${prefix}evidence`, play_integrity: `${prefix}play` }
  for (const kind of ['evidence', 'play_integrity'] as const) {
    points.push({ name: verified[kind], sql: toVerifiedCondition(kind) })
  }
  return verified
}

/** A choice of halvings: the categories that count half, and the signals that are left out. */
type Choice = { halved: ReadonlySet<SignalCategory>; without: ReadonlySet<string> }

/**
 * Every choice of the policy's halvings: a halving that is not chosen loses its confirming signals.
 * A halving without detected confirming signals, or of an empty category, needs no special case:
 * one of the two choices then loses nothing, and the other is not higher.
 */
function listChoices(compiled: CompiledPolicy, terms: readonly CategoryTerms[]): Choice[] {
  const known = new Set(terms.flatMap((one) => one.terms.map(({ path }) => path)))
  const halvings = compiled.halving.flatMap(({ category, confirming }) => {
    const paths = [...confirming].filter((path) => known.has(path))
    const target = terms.find((one) => one.rules.category === category)
    return paths.length === 0 || target?.terms.length === 0 ? [] : { category, paths }
  })
  return Array.from({ length: 1 << halvings.length }, (_, chosen) => ({
    halved: new Set(halvings.filter((_, at) => chosen & (1 << at)).map((one) => one.category)),
    without: new Set(halvings.flatMap((one, at) => (chosen & (1 << at) ? [] : one.paths))),
  }))
}

type Tallies = {
  columns: SqlColumn[]
  /** The column of a category's points without some signals; null when it can have none. */
  nameOf: (category: CategoryTerms, without: ReadonlySet<string>) => string | null
}

/** Columns with the capped points of categories, one for each set of signals that is left out. */
function createTallies(
  compiled: CompiledPolicy,
  terms: readonly CategoryTerms[],
  prefix: string,
): Tallies {
  const bySql = new Map<string, SqlColumn>()
  const nameOf: Tallies['nameOf'] = (category, without) => {
    const staying = category.terms.filter(({ path }) => !without.has(path))
    if (staying.length === 0 || category.rules.cap === 0) return null
    const sql = toCapped(category.rules, staying, compiled.strongFrom)
    const column = bySql.get(sql) ?? { name: `${prefix}c${bySql.size}`, sql }
    bySql.set(sql, column)
    return column.name
  }
  for (const { without } of listChoices(compiled, terms)) {
    for (const category of terms) nameOf(category, without)
  }
  return { columns: [...bySql.values()], nameOf }
}

function toCapped(rules: CategoryRules, terms: readonly Term[], strongFrom: number): string {
  const free = terms.filter(({ group }) => group < 0).map(({ name }) => name)
  const grouped = rules.groupCaps.flatMap((cap, index) => {
    const own = terms.filter(({ group }) => group === index).map(({ name }) => name)
    return own.length === 0 ? [] : `least(${cap}, ${add(own)})`
  })
  const capped = `toUInt8(least(${rules.cap}, ${add([...free, ...grouped])}))`
  const critical = terms.filter((term) => term.critical).map(({ name }) => `(${name} > 0)`)
  if (critical.length < strongFrom) return capped
  return `if(${add(critical)} >= ${strongFrom}, toUInt8(${rules.cap}), ${capped})`
}

function toScore(
  compiled: CompiledPolicy,
  terms: readonly CategoryTerms[],
  nameOf: Tallies['nameOf'],
): string {
  const sums = listChoices(compiled, terms).map(({ halved, without }) => {
    const hard: string[] = []
    const soft: string[] = []
    for (const category of terms) {
      const name = nameOf(category, without)
      if (name === null) continue
      const isHalved = halved.has(category.rules.category)
      const points = isHalved ? `bitShiftRight(${name} + 1, 1)` : name
      if (category.rules.soft) soft.push(points)
      else hard.push(points)
    }
    if (soft.length > 0) hard.push(`least(${toSoftLimit(compiled.thresholds)}, ${add(soft)})`)
    return hard.length === 0 ? '0' : `least(100, ${add(hard)})`
  })
  return greatest([...new Set(sums)])
}

/** By floor, the conditions over columns of points of which any lifts the score to it. */
function listFloors(compiled: CompiledPolicy, terms: readonly CategoryTerms[]) {
  const byScore = new Map<number, string[]>()
  const add = (score: number, condition: string) =>
    byScore.set(score, [...(byScore.get(score) ?? []), condition])
  const names = new Map(
    terms.flatMap(({ terms: ofCategory }) => ofCategory.map(({ path, name }) => [path, name])),
  )
  for (const [path, name] of names) {
    const floor = compiled.floors.get(path) ?? 0
    if (floor > 0) add(floor, `${name} > 0`)
    for (const [points, score] of compiled.valueFloors.get(path) ?? []) {
      if (score > 0) add(score, `${name} = ${points}`)
    }
  }
  for (const { score, signals } of compiled.jointFloors) {
    if (score === 0 || !signals.every((path) => names.has(path))) continue
    add(score, `(${signals.map((path) => `${names.get(path)} > 0`).join(' and ')})`)
  }
  return [...byScore]
}

function toFloors(
  compiled: CompiledPolicy,
  terms: readonly CategoryTerms[],
  prefix: string,
): SqlColumn[] {
  return listFloors(compiled, terms).map(([floor, conditions]) => ({
    name: `${prefix}f${floor}`,
    sql: `if(${conditions.join(' or ')}, toUInt8(${floor}), toUInt8(0))`,
  }))
}

function floorNames(
  compiled: CompiledPolicy,
  terms: readonly CategoryTerms[],
  prefix: string,
): string[] {
  return listFloors(compiled, terms).map(([floor]) => `${prefix}f${floor}`)
}

/** The flags of detected signals, including flags that lost all their points. */
function toFlags(
  terms: readonly CategoryTerms[],
  prefix: string,
  missing: string | null,
): SqlColumn[] {
  const byFlag = new Map<Flag, string[]>()
  for (const { name, flags: own } of terms.flatMap((one) => one.terms)) {
    own.forEach(({ flag, name: points }, index) => {
      // Of the flags of one signal the first with all of its points is meant.
      const others = own.slice(0, index).map((one) => `${one.name} < ${name}`)
      const isAll = own.length === 1 ? [] : [`${points} = ${name}`, ...others]
      const condition = [`${name} > 0`, ...isAll].join(' and ')
      byFlag.set(flag, [...(byFlag.get(flag) ?? []), `(${condition})`])
    })
  }
  if (missing !== null) byFlag.set('SIGNALS_MISSING', [`${missing} > 0`])
  return flagWords.map((word) => {
    const parts = [...byFlag].flatMap(([flag, conditions]) => {
      const place = placeFlag(flag)
      if (place.word !== word) return []
      return `if(${conditions.join(' or ')}, ${place.sql}, toUInt64(0))`
    })
    return { name: `${prefix}flags${word}`, sql: parts.length === 0 ? 'toUInt64(0)' : add(parts) }
  })
}

/** A sum as a balanced tree: each level doubles the width of the integers, so few are wide. */
function add(parts: readonly string[]): string {
  if (parts.length === 0) return '0'
  if (parts.length === 1) return parts[0]!
  const half = parts.length >> 1
  return `(${add(parts.slice(0, half))} + ${add(parts.slice(half))})`
}

function greatest(parts: readonly string[]): string {
  if (parts.length === 0) return '0'
  return parts.length === 1 ? parts[0]! : `greatest(${parts.join(', ')})`
}

/**
 * A query that scores rows of `telemetry`.
 * @param from the FROM clause, with its WHERE
 * @param keep columns and expressions over `telemetry` to return beside the verdict
 */
export function toScoringQuery(
  policies: readonly ScoringSql[],
  { from, keep }: { from: string; keep: readonly SqlColumn[] },
): string {
  const kept = keep.map(({ name }) => name)
  const layer = (columns: readonly SqlColumn[]) =>
    columns.map(({ name, sql }) => `${sql} as ${name}`)
  const select = (items: readonly string[], inner: string) =>
    `select ${items.join(',\n')}\nfrom ${inner}`
  const points = policies.flatMap((one) => one.points)
  const tallies = policies.flatMap((one) => one.tallies)
  const verdicts = policies.flatMap((one) => one.verdict)
  const first = select([...layer(keep), ...layer(points)], from)
  const second = select([...kept, ...layer(tallies)], `(${first})`)
  return select([...kept, ...layer(verdicts)], `(${second})`)
}
